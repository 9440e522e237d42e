// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// label sets a label of a namespace; null removes it.
func (r *rig) label(t *testing.T, namespace, name, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, name, value)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := r.admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// TestT29NamespacesRequireSignatures: a source that requires no signature is not offered any more as soon as its
// namespace requires signatures, whatever its interval is, and publishes nothing new; without the label it continues.
func TestT29NamespacesRequireSignatures(t *testing.T) {
	r := newRig(t)
	if err := installation.InstallFluxKinds(t.Context(), r.cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	for name, suspend := range map[string]bool{"active": false, "suspended": true} {
		t.Run(name, func(t *testing.T) {
			namespace := controlplane.NewNamespace(t, r.cp)
			r.configMap(t, namespace, "content", map[string]string{"a.yaml": "one"})
			parts := []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: "content"}}}
			key := r.create(t, namespace, "app", parts, func(s *v1alpha1.BundleSource) {
				s.Spec.Interval.Duration, s.Spec.ExternalArtifact = 24*time.Hour, true
			})
			first := r.ready(t, key)
			if conditions.Has(first, v1alpha1.SourceVerifiedCondition) {
				t.Errorf("no signature is required yet: %s", describe(first))
			}
			r.untilExternal(t, key, "it is offered", func(a *meta.Artifact) bool { return a != nil })
			if suspend {
				r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true })
				r.until(t, key, "the pause is seen", func(*v1alpha1.BundleSource) bool { return true })
			}
			r.label(t, namespace, v1alpha1.RequireSignaturesLabel, `"required"`)
			refused := r.unready(t, key, v1alpha1.ReasonSignatureRequired)
			if refused.Status.Artifact == nil || refused.Status.Artifact.Revision != first.Status.Artifact.Revision {
				t.Errorf("deployments that run it lose it: %s", describe(refused))
			}
			if message := conditions.GetMessage(refused, v1alpha1.SourceVerifiedCondition); !conditions.IsFalse(refused, v1alpha1.SourceVerifiedCondition) || !strings.Contains(message, "of the configMap") {
				t.Errorf("SourceVerified: %s", describe(refused))
			}
			r.untilExternal(t, key, "nothing is offered", func(a *meta.Artifact) bool { return a == nil })
			if !suspend {
				r.told(t, refused, "no signature is required of the configMap")
				r.configMap(t, namespace, "content", map[string]string{"a.yaml": "two"})
				if again := r.refresh(t, key); again.Status.Artifact.Revision != first.Status.Artifact.Revision {
					t.Errorf("published: %s", describe(again))
				}
			}
			r.label(t, namespace, v1alpha1.RequireSignaturesLabel, "null")
			r.ready(t, key)
			r.untilExternal(t, key, "it is offered again", func(a *meta.Artifact) bool { return a != nil })
		})
	}
}

// TestT29NothingIsPublished: a new source without verify publishes nothing in such a namespace, even if no policy refused
// it.
func TestT29NothingIsPublished(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	r.configMap(t, namespace, "content", map[string]string{"a.yaml": "one"})
	key := r.create(t, namespace, "app", []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: "missing"}}}, nil)
	r.unready(t, key, v1alpha1.ReasonNotFound)
	r.label(t, namespace, v1alpha1.RequireSignaturesLabel, `"required"`)
	r.unready(t, key, v1alpha1.ReasonSignatureRequired)
	r.configMap(t, namespace, "missing", map[string]string{"a.yaml": "one"})
	if s := r.refresh(t, key); s.Status.Artifact != nil || !conditions.IsStalled(s) {
		t.Errorf("published: %s", describe(s))
	}
}

// TestT29PartsWithoutSignature: SourceVerified names the parts of a composition that require no signature.
func TestT29PartsWithoutSignature(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	alice := newSigner(t)
	server := serveSigned(t, alice)
	r.secret(t, namespace, "keys", map[string]string{"alice.pub": alice.public(t)})
	r.configMap(t, namespace, "content", map[string]string{"a.yaml": "one"})
	parts := server.sources()
	parts[0].Destination = "base"
	parts = append(parts, v1alpha1.Source{Destination: "extras", ConfigMap: &v1alpha1.LocalReference{Name: "content"}})
	key := r.create(t, namespace, "app", parts, nil)
	s := r.ready(t, key)
	const says = "; no signature is required of the configMap of destination extras"
	if message := conditions.GetMessage(s, v1alpha1.SourceVerifiedCondition); !conditions.IsTrue(s, v1alpha1.SourceVerifiedCondition) || !strings.HasSuffix(message, says) {
		t.Errorf("SourceVerified: %s", describe(s))
	}
	r.label(t, namespace, v1alpha1.RequireSignaturesLabel, `"required"`)
	refused := r.unready(t, key, v1alpha1.ReasonSignatureRequired)
	if message := conditions.GetMessage(refused, v1alpha1.SourceVerifiedCondition); !strings.Contains(message, "of the configMap of destination extras") || strings.Contains(message, "base") {
		t.Errorf("SourceVerified: %s", describe(refused))
	}
}

// configMap creates a ConfigMap, or replaces its data.
func (r *rig) configMap(t *testing.T, namespace, name string, data map[string]string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	err := r.admin.Create(t.Context(), object)
	if apierrors.IsAlreadyExists(err) {
		err = r.admin.Update(t.Context(), object)
	}
	if err != nil {
		t.Fatal(err)
	}
}
