// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"net/http"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// A snapshot holds the values of Secrets: it must not outlive its deployment.
func TestSweepDropsWhatDeletedDeploymentsLeft(t *testing.T) {
	r := newRig(t)
	namespace := r.namespace(t)
	key := r.deploy(t, namespace, "live", func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
	var live v1alpha1.BundleDeployment
	if err := r.admin.Get(t.Context(), key, &live); err != nil {
		t.Fatal(err)
	}
	snapshots, err := lastapplied.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	loader, err := loader.New(loader.Options{Client: http.DefaultClient, CacheDir: t.TempDir(), Limits: fetch.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	const gone = "00000000-0000-4000-8000-000000000000"
	for _, uid := range []string{string(live.UID), gone} {
		if err := snapshots.Save(uid, []byte("objects")); err != nil {
			t.Fatal(err)
		}
	}
	reconciler := deployment.NewReconciler(deployment.Deps{Client: r.admin, APIReader: r.admin, Artifacts: loader, Snapshots: snapshots})
	if err := reconciler.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[string]bool{string(live.UID): true, gone: false} {
		if _, found, err := snapshots.Load(uid); err != nil || found != want {
			t.Errorf("snapshot of %s: found %v (%v), want %v", uid, found, err, want)
		}
	}
}
