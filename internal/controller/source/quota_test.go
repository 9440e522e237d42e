// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// incompressible is a tree of one file.
func incompressible(seed byte, size int) fstest.MapFS {
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{seed})
	_, _ = random.Read(data)
	return fstest.MapFS{"noise": &fstest.MapFile{Data: data}}
}

// A namespace that has used up its quota gets a condition, others are not affected, and
// it recovers once there is room.
func TestANamespaceAtItsQuota(t *testing.T) {
	r := newRig(t)
	full, other := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	for i, name := range []string{"quota-a:v1", "quota-b:v1"} {
		if _, err := r.registry.Push(t.Context(), name, incompressible(byte(i), quota*3/4)); err != nil {
			t.Fatal(err)
		}
	}
	first := r.create(t, full, "first", image(r.registry.Host()+"/quota-a:v1"), nil)
	stored := r.ready(t, first)
	second := r.create(t, full, "second", image(r.registry.Host()+"/quota-b:v1"), every(time.Second))
	refused := r.unready(t, second, v1alpha1.ReasonQuotaExceeded)
	if !conditions.IsTrue(refused, v1alpha1.StorageOperationFailedCondition) || conditions.IsTrue(refused, meta.StalledCondition) {
		t.Errorf("the conditions are wrong:\n%s", describe(refused))
	}
	if message := conditions.GetMessage(refused, meta.ReadyCondition); !strings.Contains(message, "delete a BundleSource") {
		t.Errorf("the message does not say what to do: %s", message)
	}
	download(t, stored.Status.Artifact)
	download(t, r.ready(t, r.create(t, other, "neighbour", image(r.registry.Host()+"/quota-b:v1"), nil)).Status.Artifact)
	if err := r.admin.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	download(t, r.ready(t, second).Status.Artifact)
}

// Superseded artifacts are removed for a new one if the quota is too small for all; the
// advertised one is not.
func TestSupersededArtifactsGiveWay(t *testing.T) {
	r := newRig(t)
	store, err := storage.Open(storage.Options{Dir: t.TempDir(), BaseURL: "http://127.0.0.1", NamespaceBytes: 250_000})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := source.NewReconciler(source.Deps{Client: installation.Unindexed(r.admin), APIReader: r.admin, Store: store, Retention: source.Retention{Records: 10}})
	object := &v1alpha1.BundleSource{}
	object.Namespace, object.Name = controlplane.NewNamespace(t, r.cp), "moving"
	for seed := range byte(5) {
		published, err := reconciler.Put(t.Context(), object, incompressible(seed, 100_000))
		if err != nil {
			t.Fatalf("revision %d does not fit in: %v", seed, err)
		}
		object.Status.Artifact = &published
	}
	if got := store.Stats(); got.Artifacts != 2 {
		t.Errorf("%d artifacts are stored, want the advertised one and its predecessor", got.Artifacts)
	}
	_, err = reconciler.Put(t.Context(), object, incompressible(9, 200_000))
	var refused *storage.QuotaError
	if !errors.As(err, &refused) {
		t.Errorf("beyond the quota: %v", err)
	}
	if err := store.Verify(t.Context(), artifact.SourceOwner(object.Namespace, object.Name), *object.Status.Artifact); err != nil {
		t.Errorf("the advertised artifact gave way: %v", err)
	}
}

// The metrics of the store have no label that tenants choose.
func TestFiguresOfTheStore(t *testing.T) {
	newRig(t)
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "satchel_artifact") {
			continue
		}
		found++
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) > 0 {
				t.Errorf("%s has labels: %v", f.GetName(), m.GetLabel())
			}
		}
	}
	if found < 8 {
		t.Errorf("found %d families of the store", found)
	}
}
