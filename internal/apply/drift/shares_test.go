// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// watchers is the API server of all clusters of a fleet, which it tells apart by their tokens. Its collections are empty, and its
// watches stay open.
type watchers struct {
	*httptest.Server
	mu     sync.Mutex
	open   map[string]int // watches by token
	opened int
}

func newWatchers(t *testing.T) *watchers {
	t.Helper()
	w := &watchers{open: map[string]int{}}
	w.Server = httptest.NewTLSServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.Close)
	return w
}

func (w *watchers) serve(answer http.ResponseWriter, request *http.Request) {
	answer.Header().Set("Content-Type", "application/json")
	if request.URL.Query().Get("watch") == "" {
		_, _ = fmt.Fprint(answer, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		return
	}
	token := request.Header.Get("Authorization")
	w.count(token, 1)
	defer w.count(token, -1)
	answer.WriteHeader(http.StatusOK)
	answer.(http.Flusher).Flush() //nolint:forcetypeassert // that of net/http
	<-request.Context().Done()
}

func (w *watchers) count(token string, change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[token] += change; w.open[token] == 0 {
		delete(w.open, token)
	}
	w.opened += max(change, 0)
}

// now is how many watches each cluster has, sorted, and how many were opened since the start.
func (w *watchers) now() (counts []int, opened int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Values(w.open)), w.opened
}

func (w *watchers) cluster(t *testing.T, remotes *tenant.Remotes, name string) *tenant.Client {
	t.Helper()
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw}))
	parsed, err := tenant.ParseKubeconfig(fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "a",
"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": %q, "certificate-authority-data": %q}}], "users": [{"name": "a", "user": {"token": %q}}]}`, w.URL, authority, name))
	if err != nil {
		t.Fatal(err)
	}
	client, err := remotes.Client(parsed, "fleet", "")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// wants subscribes a deployment to ConfigMaps in so many namespaces: a watch for each.
func wants(hub *drift.Hub, name string, client *tenant.Client, watches int) drift.Key {
	key := types.NamespacedName{Namespace: "fleet", Name: name}
	s := drift.Subscription{Client: client, Owner: inventory.Owner{Namespace: "fleet", Name: name}, Target: name, Drift: true}
	for i := range watches {
		entry := inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: fmt.Sprint("n", i), Name: "one"}}
		s.Objects = append(s.Objects, drift.Object{Entry: entry, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}})
	}
	hub.Set(key, s)
	return key
}

func newShares(t *testing.T, o drift.Options) (hub *drift.Hub, w *watchers, remotes *tenant.Remotes) {
	t.Helper()
	w = newWatchers(t)
	o.Wake = func(drift.Key, time.Duration) {}
	hub = drift.New(o)
	t.Cleanup(hub.Close)
	return hub, w, tenant.NewRemotes((&net.Dialer{}).DialContext, tenant.Options{})
}

// 30 clusters want 10 watches each, and there are 60 for other clusters: each has 2, those that come late as well, and what
// is compared at the interval says why. A ServiceAccount of this cluster has its own quarter. Nothing changes any more then.
func TestS7LateClustersHaveTheirShareOfWatches(t *testing.T) {
	const clusters, kinds, limit, remote = 30, 10, 80, 60
	hub, w, remotes := newShares(t, drift.Options{Limit: limit})
	clients := make([]*tenant.Client, clusters)
	subscribe := func() {
		for i, client := range clients {
			wants(hub, fmt.Sprint("cluster-", i), client, kinds)
		}
	}
	for i := range clients {
		clients[i] = w.cluster(t, remotes, fmt.Sprint("token-", i))
	}
	subscribe()
	settled := func() {
		t.Helper()
		workspace.Eventually(t, "each cluster has its share", func() error {
			if counts, _ := w.now(); len(counts) != clusters || counts[0] != remote/clusters || counts[clusters-1] != remote/clusters {
				return fmt.Errorf("%v", counts)
			}
			return nil
		})
	}
	settled()
	_, opened := w.now()
	t.Logf("%d clusters have %d watches each; %d were opened for that", clusters, remote/clusters, opened)
	for i := range clients {
		gaps := hub.Gaps(types.NamespacedName{Namespace: "fleet", Name: fmt.Sprint("cluster-", i)})
		if len(gaps) != kinds-remote/clusters || !strings.Contains(gaps[0].Why, "--watch-limit") {
			t.Errorf("cluster %d: %v", i, gaps)
		}
	}
	subscribe()
	pool, err := tenant.NewPool(&rest.Config{Host: w.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw})}}, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := pool.Client(tenant.Identity{Namespace: "fleet", ServiceAccount: "installer"})
	if err != nil {
		t.Fatal(err)
	}
	local := wants(hub, "local", client, limit)
	workspace.Eventually(t, "the local account has its share", func() error {
		if figures := hub.Figures(); figures.Open != limit || len(hub.Gaps(local)) != limit-limit/4 {
			return fmt.Errorf("%+v, %d gaps", figures, len(hub.Gaps(local)))
		}
		return nil
	})
	if _, now := w.now(); now > opened+limit/4+clusters { // some of those that ended may have reached the server late
		t.Errorf("%d watches were opened once each cluster had its share", now-opened-limit/4)
	}
	for i := range clients { // all but two leave
		if i > 1 {
			hub.Drop(types.NamespacedName{Namespace: "fleet", Name: fmt.Sprint("cluster-", i)})
		}
	}
	clients = clients[:2]
	subscribe()
	workspace.Eventually(t, "the places of clusters that left are used", func() error {
		if figures := hub.Figures(); figures.Open != limit/4+2*kinds || figures.Gaps != limit-limit/4 {
			return fmt.Errorf("%+v", figures)
		}
		return nil
	})
}

// One cluster has no more than the limit of a cluster, whichever of its accounts are used, however many places are free.
func TestS7WatchesOfAClusterAreLimited(t *testing.T) {
	const most = 20
	hub, w, remotes := newShares(t, drift.Options{PerCluster: most})
	key := wants(hub, "cluster", w.cluster(t, remotes, "token"), most+5)
	workspace.Eventually(t, "the limit is reached", func() error {
		if counts, _ := w.now(); !slices.Equal(counts, []int{most}) || hub.Figures().Gaps != 5 {
			return fmt.Errorf("%v %+v", counts, hub.Figures())
		}
		return nil
	})
	if gaps := hub.Gaps(key); !strings.Contains(gaps[0].Why, "--watches-per-cluster") {
		t.Errorf("got %v", gaps)
	}
}
