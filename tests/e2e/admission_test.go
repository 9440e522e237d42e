// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// F19: an admission webhook with failurePolicy Fail denies some objects, answers too late,
// or is down. The failure names the objects, it is tried again with pauses, and when the
// webhook is well again, everything arrives.
func TestF19AdmissionWebhookFails(t *testing.T) {
	r := newRig(t)
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		says   string
	}{
		"denies":    {deny, "c-07"},
		"times out": {neverAnswer, "c-0"},
		"is down":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) }, "c-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.Namespace(t)
			var asked atomic.Int32
			var well atomic.Bool
			webhook := r.webhook(t, namespace, func(w http.ResponseWriter, request *http.Request) {
				if asked.Add(1); well.Load() {
					review(w, request, nil)
					return
				}
				tc.answer(w, request)
			})
			key := r.Deploy(t, namespace, "app", r.Push(t, "f19-"+namespace+":v1", configMaps("c", 10)), func(d *v1alpha1.BundleDeployment) {
				d.Spec.RetryInterval = v1alpha1.Duration{Duration: 10 * time.Second}
			})
			d := r.Until(t, key, "the failure is reported", func(d *v1alpha1.BundleDeployment) bool { return conditions.IsFalse(d, meta.ReadyCondition) })
			if message := conditions.GetMessage(d, meta.ReadyCondition); !strings.Contains(message, tc.says) || !strings.Contains(message, webhook) {
				t.Errorf("the message names neither object nor webhook: %s", message)
			}
			before, began := asked.Load(), time.Now()
			select {
			case <-time.After(6 * time.Second):
			case <-t.Context().Done():
			}
			attempts := float64(asked.Load()-before) / 10
			t.Logf("%.1f attempts in %.0f s", attempts, time.Since(began).Seconds())
			if attempts > 6 {
				t.Errorf("%.1f attempts in six seconds: a tight loop", attempts)
			}
			well.Store(true)
			r.Ready(t, key)
			if found := r.named(t, namespace, "c-"); len(found) != 10 {
				t.Errorf("%d objects, want 10", len(found))
			}
			r.Remove(t, key)
		})
	}
}

// webhook serves an admission webhook for the ConfigMaps of bundles in a namespace, and
// returns its name.
func (r *rig) webhook(t *testing.T, namespace string, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	none := admissionregistrationv1.SideEffectClassNone
	fail, seconds := admissionregistrationv1.Fail, int32(1)
	name := namespace + ".example.com"
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name, SideEffects: &none, FailurePolicy: &fail, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.NamespaceLabel: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	if err := r.Admin.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(r.Admin.Delete(context.WithoutCancel(t.Context()), configuration)); err != nil {
			t.Error(err)
		}
	})
	return name
}

// neverAnswer does not answer until the client closes the request, which is noticed once the body is read.
func neverAnswer(_ http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	<-request.Context().Done()
}

// deny refuses one object of the ten.
func deny(w http.ResponseWriter, request *http.Request) {
	review(w, request, func(name string) bool { return name == "c-07" })
}

// review answers an admission review; nil admits everything.
func review(w http.ResponseWriter, request *http.Request, denied func(string) bool) {
	var asked admissionv1.AdmissionReview
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: true}
	if denied != nil && denied(asked.Request.Name) {
		answer.Allowed, answer.Result = false, &metav1.Status{Message: fmt.Sprintf("%s is not wanted", asked.Request.Name)}
	}
	asked.Response, asked.Request = answer, nil
	_ = json.NewEncoder(w).Encode(asked)
}
