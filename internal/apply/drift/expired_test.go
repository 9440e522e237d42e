// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// gate is a connection on which new watches wait until it is opened, and that counts lists.
type gate struct {
	next  http.RoundTripper
	shut  atomic.Pointer[chan struct{}] // closed when it opens; nil while it is open
	held  atomic.Int32
	lists atomic.Int32
}

func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	switch {
	case query.Get("watch") == "true":
		if shut := g.shut.Load(); shut != nil {
			g.held.Add(1)
			select {
			case <-*shut:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
	case query.Has("labelSelector"):
		g.lists.Add(1)
	}
	return g.next.RoundTrip(request)
}

// gated gives the workspace a client that connects through a gate, open at first.
func gated(w *workspace.Workspace) *gate {
	w.T.Helper()
	g := &gate{}
	config := w.ControlPlane.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { g.next = next; return g })
	var err error
	if w.Pool, err = tenant.NewPool(config, tenant.Options{}); err != nil {
		w.T.Fatal(err)
	}
	client, err := w.Pool.Client(tenant.Identity{Namespace: w.Namespace, ServiceAccount: "installer"})
	if err != nil {
		w.T.Fatal(err)
	}
	w.Client = client.For(w.Owner.Name)
	return g
}

// A watch that continues from a version that the API server does not know any more gets 410 Gone, as
// after a restart of that server or a compaction. Then everything is listed again: deletions and
// changes are found, and the watch continues from there.
func TestWatchListsAgainAfterExpiry(t *testing.T) {
	w := workspace.New(t, workspace.Everything...)
	w.ControlPlane.RequireControl(t)
	g := gated(w)
	w.MustApply(workspace.TwoMaps)
	d := watch(w, drift.Options{})
	d.open()
	shut := make(chan struct{})
	g.shut.Store(&shut)
	for i := range 3 { // what the API server remembers begins after these
		other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("other-", i)}}
		if _, err := w.Admin.CoreV1().Secrets(w.Namespace).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.ControlPlane.APIServer().Kill(); err != nil {
		t.Fatal(err)
	}
	if err := w.ControlPlane.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	workspace.Eventually(t, "the watch is asked for again", func() error {
		if g.held.Load() == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	listed := g.lists.Load()
	d.remove("one")
	w.Patch(types.MergePatchType, "two", `{"data":{"colour":"green"}}`, "kubectl-edit")
	g.shut.Store(nil)
	close(shut)
	d.drifted("one", "two")
	if g.lists.Load() == listed {
		t.Error("nothing was listed: the API server remembered all, and the test proves nothing")
	}
	d.open()
	w.MustApply(workspace.TwoMaps)
	d.subscribe()
	d.drifted()
	listed = g.lists.Load()
	w.Patch(types.MergePatchType, "one", `{"data":{"colour":"green"}}`, "kubectl-edit")
	d.drifted("one")
	if more := g.lists.Load() - listed; more > 0 {
		t.Errorf("listed %d times more, want the watch to tell", more)
	}
}
