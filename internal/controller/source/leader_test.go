// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// F24: an artifact that is neither in the storage of a new leader nor available
// upstream is not advertised any more after one reconcile.
func TestF24LeaderWithEmptyStorage(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	upstream := newArchive(t, pack(t, files("a.yaml", "one")))
	key := r.create(t, namespace, "moved", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: upstream.URL}}}, nil)
	r.ready(t, key)
	upstream.Close()
	reconcile(t, alone(t, r, nil), key)
	var after v1alpha1.BundleSource
	if err := r.admin.Get(t.Context(), key, &after); err != nil {
		t.Fatal(err)
	}
	if after.Status.Artifact != nil || conditions.GetReason(&after, v1alpha1.ArtifactInStorageCondition) != v1alpha1.ReasonArtifactLost {
		t.Errorf("a lost artifact is still advertised:\n%s", describe(&after))
	}
}
