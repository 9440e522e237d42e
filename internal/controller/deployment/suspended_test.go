// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// suspend suspends the deployment while the clocks agree.
func (s *selfSigned) suspend(t *testing.T) {
	t.Helper()
	s.r.edit(t, s.key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
	s.r.until(t, s.key, "suspended", func(*v1alpha1.BundleDeployment) bool { return true })
}

// setFailurePolicy changes a webhook as a person would.
func (r *rig) setFailurePolicy(t *testing.T, o *unstructured.Unstructured, policy string) {
	t.Helper()
	hooks, _, _ := unstructured.NestedSlice(r.must(t, o).Object, "webhooks")
	hooks[0].(map[string]any)["failurePolicy"] = policy //nolint:forcetypeassert // of the API server
	o.Object["webhooks"] = hooks
	if err := r.admin.Update(t.Context(), o, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
}

func failurePolicy(o *unstructured.Unstructured) any {
	hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	return hooks[0].(map[string]any)["failurePolicy"] //nolint:forcetypeassert // of the API server
}

// While suspended, certificates are renewed and nothing else is.
func TestRenewalWhileSuspended(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	s.suspend(t)
	check := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "check."+s.group)
	r.patch(t, object("apps/v1", "Deployment", s.namespace, "gadgets"), `{"spec":{"replicas":2}}`)
	first := s.serving(t)

	mark := r.mark(t)
	result := s.reconcile(t)
	if written := s.written(t, mark); len(written) > 0 {
		t.Errorf("written although nothing is due: %v", written)
	}
	due := leaf(t, first).NotBefore.Add(certificate.ServingLife / 3 * 2)
	if wakes := s.now.Add(result.RequeueAfter); wakes.Before(due.Add(-day)) || wakes.After(due.Add(day)) {
		t.Errorf("wakes at %s, want about %s", wakes, due)
	}
	s.now = due.Add(day)
	s.reconcile(t)
	s.works(t)
	if written := s.written(t, mark); !equal(written, []string{"secrets " + servingSecret}) {
		t.Errorf("written: %v, want the serving Secret only", written)
	}
	found := s.deployment(t)
	if until := leaf(t, s.serving(t)).NotAfter; !found.Status.CertificateExpirationTime.Time.Equal(until) || len(found.Status.Warnings) > 0 {
		t.Errorf("status says %s, want %s; warnings %q", found.Status.CertificateExpirationTime, until, found.Status.Warnings)
	}

	// A successor of the authority: what somebody changed is left alone, and so the old one goes on signing.
	r.setFailurePolicy(t, check, "Fail")
	s.now = leaf(t, s.authority(t)).NotAfter.Add(day - certificate.Succession)
	authority := s.authority(t).Data["tls.crt"]
	mark = r.mark(t)
	s.reconcile(t)
	s.now = s.now.Add(2 * day)
	s.reconcile(t)
	want := []string{"customresourcedefinitions gadgets." + s.group, "mutatingwebhookconfigurations fill." + s.group, "secrets " + servingSecret, "secrets " + authoritySecret}
	if written := slices.Compact(s.written(t, mark)); !equal(written, want) {
		t.Errorf("written: %v, want %v", written, want)
	}
	if !bytes.Equal(s.authority(t).Data["tls.crt"], authority) {
		t.Error("the successor signs although not everything trusts it")
	}
	if policy := failurePolicy(r.must(t, check)); policy != "Fail" {
		t.Error("what was changed while suspended was reverted")
	}
	warned := strings.Join(s.deployment(t).Status.Warnings, "\n")
	if !strings.Contains(warned, "check."+s.group+" was changed while suspended") || !s.heard("Warning CertificateNotRenewed: ") {
		t.Errorf("no warning names it: %q; events %v", warned, s.told.notes)
	}
}

// Who deletes or edits the authority while suspended has it back, or another one,
// on resuming; nothing is signed meanwhile.
func TestSuspendedWithoutItsAuthority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	damages := map[string]func(t *testing.T, s *selfSigned){
		"deleted": func(t *testing.T, s *selfSigned) {
			t.Helper()
			r.delete(t, object("v1", "Secret", s.namespace, authoritySecret))
		},
		"edited": func(t *testing.T, s *selfSigned) {
			t.Helper()
			r.patch(t, object("v1", "Secret", s.namespace, authoritySecret), `{"data":{"tls.key":"eA=="}}`)
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := r.selfSigned(t)
			s.suspend(t)
			damage(t, s)
			first := s.serving(t)
			s.now = late(t, first)
			mark := r.mark(t)
			result := s.reconcile(t)
			if written := s.written(t, mark); len(written) > 0 {
				t.Errorf("written: %v", written)
			}
			if result.RequeueAfter <= 0 || result.RequeueAfter > day {
				t.Errorf("comes back after %s, want a day at most as long as nothing is renewed", result.RequeueAfter)
			}
			warned := strings.Join(s.deployment(t).Status.Warnings, "\n")
			for _, want := range []string{authoritySecret + " was changed while suspended", servingSecret + " ends on"} {
				if !strings.Contains(warned, want) {
					t.Errorf("%q is not in the warnings: %s", want, warned)
				}
			}
		})
	}
}

// Where what was applied last is not what the cluster has, as after an upgrade that
// failed halfway, trusting objects are not taken back to it.
func TestSuspendedRevertsNoNewerRevision(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t) // the driver keeps what was applied first
	second := r.publish(t, s.namespace, "app", "v2", operator(s.group, "2.0.0"))
	r.ready(t, s.key, second.Revision)
	s.suspend(t)
	s.now = leaf(t, s.authority(t)).NotAfter.Add(day - certificate.Succession)
	s.reconcile(t)
	if definition := fmt.Sprint(r.must(t, crdObject(s.group)).Object["spec"]); !strings.Contains(definition, "Gadgets of 2.0.0") {
		t.Errorf("the CRD was taken back: %s", definition)
	}
	if warned := strings.Join(s.deployment(t).Status.Warnings, "\n"); !strings.Contains(warned, "gadgets."+s.group+" was changed") {
		t.Errorf("no warning names the CRD: %s", warned)
	}
	if len(s.authority(t).Data["next.crt"]) == 0 || !bytes.Contains(r.bundles(t, s.group)["MutatingWebhookConfiguration"], s.authority(t).Data["next.crt"]) {
		t.Error("what is as it was applied does not trust the successor")
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
