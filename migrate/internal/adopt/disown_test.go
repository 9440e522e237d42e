// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDisown: everything is removed by which a former owner would delete an object, and nothing else.
func TestDisown(t *testing.T) {
	object := &metav1.ObjectMeta{
		Labels:     map[string]string{"app": "web", "olm.owner": "a.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.managed": "true"},
		Finalizers: []string{"operators.coreos.com/cleanup", "example.org/backup", "foregroundDeletion"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "a.v1"},
			{APIVersion: "v1", Kind: "ConfigMap", Name: "friend"},
			{APIVersion: "example.org/v1", Kind: "App", Name: "web", Controller: new(true)},
		},
	}
	want := map[string]any{
		"labels":          map[string]any{"olm.owner": nil, "olm.owner.kind": nil, "olm.managed": nil},
		"annotations":     map[string]any{"satchel.dev/orphaned": "true"},
		"finalizers":      []string{"example.org/backup", "foregroundDeletion"},
		"ownerReferences": []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "friend"}},
	}
	if diff := cmp.Diff(want, disown(object)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"annotations": map[string]any{"satchel.dev/orphaned": "true"}}, disown(&metav1.ObjectMeta{})); diff != "" {
		t.Errorf("orphaned: -want +got:\n%s", diff)
	}
}
