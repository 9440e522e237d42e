// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

func newPool(t *testing.T, s *server, o tenant.Options) *tenant.Pool {
	t.Helper()
	config := &rest.Config{Host: s.URL, Impersonate: rest.ImpersonationConfig{UserName: "another-user"}}
	pool, err := tenant.NewPool(config, o)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func clientOf(t *testing.T, pool *tenant.Pool, name string) *tenant.Client {
	t.Helper()
	client, err := pool.Client(tenant.Identity{Namespace: "shop", ServiceAccount: name})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var (
	configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	one       = tenant.Ref{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "shop", Name: "one"}
)

// Every kind of request impersonates the account; discovery does not.
func TestT7EveryRequestIsImpersonated(t *testing.T) {
	s := newServer(t)
	client := clientOf(t, newPool(t, s, tenant.Options{}), "installer").For("app")
	ctx := t.Context()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	calls := map[string]func() error{
		"metadata": func() error { _, err := client.Metadata(ctx, one); return err },
		"get":      func() error { _, err := client.Get(ctx, one); return err },
		"apply": func() error {
			_, err := client.Apply(ctx, one, object, tenant.ApplyOptions{Manager: "m"})
			return err
		},
		"merge":  func() error { _, err := client.Merge(ctx, one, map[string]any{}, "m"); return err },
		"delete": func() error { _, err := client.Delete(ctx, one, "uid", "1"); return err },
		"rules":  func() error { _, err := client.Rules(ctx, "shop"); return err },
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _ = client.ListMetadata(ctx, one, metav1.ListOptions{}) // the small server cannot answer; it sees the request
	_, _ = client.List(ctx, one, "", 1)
	if watching, err := client.WatchMetadata(ctx, one, metav1.ListOptions{}); err == nil {
		watching.Stop()
	}
	if got := client.Requests(); got != int64(len(calls)+3) {
		t.Errorf("%d requests counted", got)
	}
	for _, request := range s.seen("") {
		if !strings.HasSuffix(request, " system:serviceaccount:shop:installer") {
			t.Errorf("not as the account: %s", request)
		}
	}
	if _, err := client.Kinds().Find(ctx, configMap); err != nil {
		t.Fatal(err)
	}
	for _, request := range s.seen("GET /api ") {
		t.Errorf("discovery with impersonation: %s", request)
	}
}

// A field manager is required: without one all deployments would share one.
func TestApplyNeedsAManager(t *testing.T) {
	client := clientOf(t, newPool(t, newServer(t), tenant.Options{}), "installer")
	if _, err := client.Apply(t.Context(), one, &unstructured.Unstructured{}, tenant.ApplyOptions{}); err == nil {
		t.Error("applied without a field manager")
	}
}

// Clients are cached, up to a number and for a limited time.
func TestS7ClientsAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	pool := newPool(t, newServer(t), tenant.Options{Clients: 2, ClientTTL: time.Minute, Now: func() time.Time { return now }})
	first := clientOf(t, pool, "a")
	if clientOf(t, pool, "a") != first {
		t.Error("the client is not kept")
	}
	now = now.Add(2 * time.Minute)
	second := clientOf(t, pool, "a")
	if second == first {
		t.Error("the client outlived its time")
	}
	clientOf(t, pool, "b")
	clientOf(t, pool, "c")
	if clientOf(t, pool, "a") == second {
		t.Error("more clients are kept than two")
	}
}

// Discovery is shared between accounts, requested when a kind is not known, and not
// more often than allowed.
func TestS7DiscoveryIsSharedAndBounded(t *testing.T) {
	s := newServer(t)
	now := time.Unix(0, 0)
	pool := newPool(t, s, tenant.Options{RefreshPeriod: time.Minute, Now: func() time.Time { return now }})
	find := func(account, kind string) error {
		_, err := clientOf(t, pool, account).Kinds().Find(t.Context(), configMap.GroupVersion().WithKind(kind))
		return err
	}
	asked := func() int { return len(s.seen("GET /api/v1")) }
	for i := range 5 {
		if err := find(fmt.Sprint("account-", i), "ConfigMap"); err != nil {
			t.Fatal(err)
		}
	}
	if asked() != 1 {
		t.Errorf("asked %d times for five accounts", asked())
	}
	for range 5 {
		if err := find("a", "Novelty"); !discovery.IsNoKind(err) {
			t.Errorf("got %v, want no such kind", err)
		}
	}
	if asked() != 1 {
		t.Errorf("an unknown kind asked %d times within the period", asked())
	}
	s.mu.Lock()
	s.kinds = append(s.kinds, "Novelty")
	s.mu.Unlock()
	for range 5 { // everybody who misses a kind says so, and shares one answer
		pool.Kinds().Forget()
		if err := find("a", "Novelty"); !discovery.IsNoKind(err) || asked() != 1 {
			t.Errorf("just after an answer: %v, asked %d times", err, asked())
		}
	}
	now = now.Add(12 * time.Second)
	if err := find("a", "Novelty"); err != nil || asked() != 2 {
		t.Errorf("after a CRD was established: %v, asked %d times", err, asked())
	}
	s.mu.Lock()
	s.kinds = append(s.kinds, "Later")
	s.mu.Unlock()
	now = now.Add(2 * time.Minute)
	if err := find("a", "Later"); err != nil {
		t.Errorf("after the period: %v", err)
	}
}

// A group with a server that does not answer does not count as gone.
func TestF22FailingGroupIsNotGone(t *testing.T) {
	s := newServer(t)
	s.failing = "metrics.example.org"
	kinds := newPool(t, s, tenant.Options{}).Kinds()
	_, err := kinds.Find(t.Context(), schema.GroupVersionKind{Group: s.failing, Version: "v1", Kind: "Metric"})
	if err == nil || discovery.IsNoKind(err) {
		t.Errorf("got %v, want an error that says nothing about the kind", err)
	}
	if _, err := kinds.Preferred(t.Context(), schema.GroupKind{Group: s.failing, Kind: "Metric"}); err == nil || discovery.IsNoKind(err) {
		t.Errorf("got %v, want an error that says nothing about the kind", err)
	}
	if _, err := kinds.Namespaced(t.Context()); err == nil {
		t.Error("an incomplete list is given for a complete one")
	}
	_, err = kinds.Find(t.Context(), schema.GroupVersionKind{Version: "v2", Kind: "ConfigMap"})
	var none *discovery.NoKindError
	if !errors.As(err, &none) || !slices.Equal(none.Served, []string{"v1"}) {
		t.Errorf("got %v, want the served version named", err)
	}
}

// Warnings reach the collector of the context, each once, bounded.
func TestWarningsAreCollected(t *testing.T) {
	s := newServer(t)
	client := clientOf(t, newPool(t, s, tenant.Options{}), "installer")
	s.warning = "unknown field"
	warnings := &tenant.Warnings{}
	ctx := tenant.WithWarnings(t.Context(), warnings)
	for range 3 {
		if _, err := client.Get(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	if got := warnings.List(); !slices.Equal(got, []string{"unknown field"}) {
		t.Errorf("got %q", got)
	}
	for i := range 100 {
		s.mu.Lock()
		s.warning = fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000))
		s.mu.Unlock()
		if _, err := client.Get(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	if got := warnings.List(); len(got) != 50 || len(got[0]) > 510 {
		t.Errorf("%d warnings, the first of %d bytes", len(got), len(got[0]))
	}
	if _, err := client.Get(t.Context(), one); err != nil {
		t.Fatal(err) // without a collector nothing breaks
	}
}

// The identity of the cluster is read once a minute, as the controller.
func TestTargetIsKept(t *testing.T) {
	s := newServer(t)
	now := time.Unix(0, 0)
	pool := newPool(t, s, tenant.Options{Now: func() time.Time { return now }})
	for range 3 {
		if target, err := pool.Target(t.Context()); err != nil || target != "uid-of-system" {
			t.Fatalf("got %q, %v", target, err)
		}
	}
	now = now.Add(2 * time.Minute)
	if _, err := pool.Target(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.seen("GET /api/v1/namespaces/kube-system"); len(got) != 2 || strings.Contains(got[0], "system:serviceaccount") {
		t.Errorf("asked %q", got)
	}
}

// That an account exists is cached for a second, and never that it does not.
func TestT2AccountIsLookedForAgain(t *testing.T) {
	s := newServer(t)
	now := time.Unix(0, 0)
	pool := newPool(t, s, tenant.Options{Now: func() time.Time { return now }})
	id := tenant.Identity{Namespace: "shop", ServiceAccount: "installer"}
	exists := func(want bool, asked int) {
		t.Helper()
		got, err := pool.AccountExisted(t.Context(), id)
		if err != nil || got != want {
			t.Errorf("got %t, %v, want %t", got, err, want)
		}
		if seen := s.seen("GET /api/v1/namespaces/shop/serviceaccounts/installer"); len(seen) != asked {
			t.Errorf("asked %d times, want %d", len(seen), asked)
		}
	}
	exists(true, 1)
	exists(true, 1)
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	exists(true, 1)
	if got, err := pool.AccountExists(t.Context(), id); err != nil || got {
		t.Errorf("who asks again is told %t, %v of an account that is gone", got, err)
	}
	now = now.Add(1001 * time.Millisecond)
	exists(false, 3)
	exists(false, 4)
	s.mu.Lock()
	s.gone = false
	s.mu.Unlock()
	exists(true, 5)
}
