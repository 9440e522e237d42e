// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// A process that ends, or lost its lease, reports nothing: the source did not fail.
func TestAShutdownIsNoFailure(t *testing.T) {
	r := newRig(t)
	asked, end := make(chan struct{}, 10), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		asked <- struct{}{}
		select {
		case <-end:
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(func() { close(end); slow.Close() })
	namespace := controlplane.NewNamespace(t, r.cp)
	key := r.create(t, namespace, "slow", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: slow.URL}}}, nil)
	store, err := storage.Open(storage.Options{Dir: t.TempDir(), BaseURL: "http://127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	ending := source.NewReconciler(source.Deps{
		Client: installation.Unindexed(r.admin), APIReader: r.admin, Store: store, Scratch: t.TempDir(), Upstreams: upstreams(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := ending.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		done <- err
	}()
	for range 2 { // the controller of the rig asks, too, and waits
		select {
		case <-asked:
		case <-time.After(patience):
			t.Fatal("the upstream was not asked")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the reconcile of a process that ends failed: %v", err)
	}
	var after v1alpha1.BundleSource
	if err := r.admin.Get(t.Context(), key, &after); err != nil {
		t.Fatal(err)
	}
	if len(after.Status.Conditions) > 0 {
		t.Errorf("a process that ends reported:\n%s", describe(&after))
	}
}
