// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// demandSignature makes a source require a signature, and sets its condition.
func (r *rig) demandSignature(t *testing.T, namespace, name string, verified metav1.ConditionStatus, reason string) {
	t.Helper()
	var source v1alpha1.BundleSource
	if err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &source); err != nil {
		t.Fatal(err)
	}
	before := source.DeepCopy()
	source.Spec.Sources = []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "registry.example.org/a:v1", Verify: &v1alpha1.ImageVerification{
		Provider: "cosign", SecretRef: &v1alpha1.LocalReference{Name: "keys"},
	}}}}
	if err := r.admin.Patch(t.Context(), &source, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.setSource(t, namespace, name, func(s *v1alpha1.BundleSource) {
		s.Status.SourcesDigest, s.Status.ObservedGeneration = effective.SourcesDigest(&s.Spec), s.Generation
		conditions.Set(s, &metav1.Condition{Type: v1alpha1.SourceVerifiedCondition, Status: verified, Reason: reason, Message: "so it stands"})
	})
}

// TestM34Deployments: content that the current trust settings of a source have not accepted stays in deployments that run
// it, and is not installed by others.
func TestM34Deployments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	r.demandSignature(t, namespace, "app", metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)

	r.demandSignature(t, namespace, "app", metav1.ConditionUnknown, v1alpha1.ReasonTrustChanged)
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "one") // what runs is corrected
	r.ready(t, key, first.Revision)

	from := func(d *v1alpha1.BundleDeployment) {
		d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "app"}
	}
	other := r.deploy(t, namespace, "new", both(quick, from))
	refused := r.unready(t, other, v1alpha1.ReasonSourceNotTrusted)
	if message := conditions.GetMessage(refused, meta.ReadyCondition); refused.Status.Applied.Revision != "" || !strings.Contains(message, "so it stands") || !strings.Contains(message, first.Revision) {
		t.Errorf("a new deployment: %s", describe(refused))
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Processors = []v1alpha1.Processor{{Metadata: &v1alpha1.MetadataProcessor{Labels: map[string]string{"edited": "yes"}}}}
	})
	edited := r.unready(t, key, v1alpha1.ReasonSourceNotTrusted)
	if !strings.Contains(conditions.GetMessage(edited, meta.ReadyCondition), "stays applied") {
		t.Errorf("an edit: %s", describe(edited))
	}
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "one") // also while an edit waits

	// Accepted content is installed although newer content was refused.
	r.demandSignature(t, namespace, "app", metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed)
	r.ready(t, key, first.Revision)
}
