// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// late is a time at which less than a sixth of the life of a certificate is left.
func late(t *testing.T, secret *corev1.Secret) time.Time {
	t.Helper()
	return leaf(t, secret).NotAfter.Add(-60 * day)
}

// A renewal that cannot be written causes a warning, and is retried.
func TestWarningWhenRenewalFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	s.ready(t)
	secret := object("v1", "Secret", s.namespace, servingSecret)
	lift := r.refuse(t, s.namespace, policy{operation: admissionv1.Update, resource: "secrets", rule: "false", message: "'no Secret is changed here'"},
		func(ctx context.Context) error {
			return r.admin.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"eA=="}}`)), client.DryRunAll)
		})
	s.now = late(t, s.serving(t))
	until := leaf(t, s.serving(t)).NotAfter
	var result ctrl.Result
	for range 3 {
		result = s.reconcile(t)
	}
	found := s.deployment(t)
	want := "certificates: the one in Secret " + s.namespace + "/" + servingSecret + " expires on " + until.UTC().Format(time.DateTime)
	if len(found.Status.Warnings) != 1 || !strings.HasPrefix(found.Status.Warnings[0], want) {
		t.Errorf("warnings %q, want one: %s", found.Status.Warnings, want)
	}
	if n := strings.Count(strings.Join(s.told.notes, "\n"), "Warning CertificateNotRenewed: "+want); n != 1 {
		t.Errorf("%d events warn, want one: %v", n, s.told.notes)
	}
	if !found.Status.CertificateExpirationTime.Time.Equal(until) || !s.ends(t)[s.namespace+"/"+servingSecret].Equal(until) {
		t.Errorf("status says %s, the metric %v, want what is on the cluster: %s", found.Status.CertificateExpirationTime, s.ends(t), until)
	}
	if result.RequeueAfter > time.Minute || isReady(found) {
		t.Errorf("comes back after %s:\n%s", result.RequeueAfter, describe(found))
	}
	lift()
	r.eventually(t, t.Context(), "renewed", func(context.Context) (bool, string) {
		s.reconcile(t)
		found = s.deployment(t)
		return isReady(found) && leaf(t, s.serving(t)).NotAfter.After(until), describe(found)
	})
	if len(found.Status.Warnings) > 0 {
		t.Errorf("warnings stay after the renewal: %q", found.Status.Warnings)
	}
}

// If the Secrets may not be read any more, the known expiry times are kept.
func TestWarningWhenSecretsCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	before, _ := s.ready(t)
	first := s.serving(t)
	r.delete(t, object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", s.namespace+"-installer"))
	s.now = late(t, first)
	r.eventually(t, t.Context(), "refused", func(context.Context) (bool, string) {
		s.reconcile(t)
		found := s.deployment(t)
		return !isReady(found), describe(found)
	})
	found := s.deployment(t)
	if !found.Status.CertificateExpirationTime.Equal(before.Status.CertificateExpirationTime) {
		t.Errorf("status says %s, want %s as before", found.Status.CertificateExpirationTime, before.Status.CertificateExpirationTime)
	}
	if warned := strings.Join(found.Status.Warnings, "\n"); !strings.Contains(warned, "certificates: the first expires on") {
		t.Errorf("warnings %q", found.Status.Warnings)
	}
	if message := conditions.GetMessage(found, v1alpha1.PlannedCondition); !strings.Contains(message, servingSecret) {
		t.Errorf("the message does not name the Secret: %s", message)
	}
	if err := installation.Admin(t.Context(), r.admin, s.namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, t.Context(), "renewed with the same authority", func(context.Context) (bool, string) {
		s.reconcile(t)
		return !bytes.Equal(s.serving(t).Data["tls.crt"], first.Data["tls.crt"]), describe(s.deployment(t))
	})
	s.works(t)
}

// The metric goes with the deployment.
func TestExpiryGoesWithTheDeployment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	s.ready(t)
	if len(s.ends(t)) != 2 {
		t.Fatalf("the metric shows %v, want two ends", s.ends(t))
	}
	r.remove(t, s.key)
	s.reconcile(t)
	if len(s.ends(t)) > 0 {
		t.Errorf("the metric still shows %v", s.ends(t))
	}
}
