// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// suspend suspends the deployment while the clock of the driver is the real one.
func (s *selfSigned) suspend(t *testing.T) {
	t.Helper()
	s.r.edit(t, s.key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
	s.r.until(t, s.key, "suspended", func(*v1alpha1.BundleDeployment) bool { return true })
}

// While suspended, nothing is written, certificates included. Before the first one ends, the status and an event warn; on
// resuming it is renewed.
func TestSuspendedMeansUntouched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	s.suspend(t)
	r.delete(t, object("v1", "Secret", s.namespace, authoritySecret))
	first := s.serving(t)
	warned := func() string { return strings.Join(s.deployment(t).Status.Warnings, "\n") }

	mark := r.mark(t)
	result := s.reconcile(t)
	due := leaf(t, first).NotAfter.Add(-certificate.ServingLife / 6)
	if wakes := s.now.Add(result.RequeueAfter); wakes.Before(due.Add(-day)) || wakes.After(due.Add(day)) || warned() != "" {
		t.Errorf("wakes at %s, want about %s; warnings %q", wakes, due, warned())
	}
	for range 2 {
		s.now = due.Add(day)
		if result := s.reconcile(t); result.RequeueAfter != 0 {
			t.Errorf("comes back after %s although it has warned", result.RequeueAfter)
		}
	}
	want := "not renewed while the deployment is suspended: resume it"
	if n := strings.Count(strings.Join(s.told.notes, "\n"), "Warning CertificateNotRenewed: "); !strings.Contains(warned(), want) || n != 1 {
		t.Errorf("warnings %q, %d events", warned(), n)
	}
	if written := s.written(t, mark); len(written) > 0 {
		t.Errorf("written while suspended: %v", written)
	}

	s.r.edit(t, s.key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = false })
	s.reconcile(t)
	s.ready(t)
	s.works(t)
	if warned() != "" || bytes.Equal(s.serving(t).Data["tls.crt"], first.Data["tls.crt"]) {
		t.Errorf("it was not renewed; warnings %q", warned())
	}
}

// A suspended deployment that was never applied gets no certificates.
func TestSuspendedBeforeTheFirstRevision(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mark := r.mark(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }))
	r.unready(t, key, v1alpha1.ReasonSuspended)
	r.handled(t, key)
	asked := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return strings.HasPrefix(e.ImpersonatedUser, "system:serviceaccount:"+namespace+":")
	})
	if len(asked) > 0 {
		t.Errorf("requests on behalf of a suspended deployment that was never applied: %v", asked)
	}
}
