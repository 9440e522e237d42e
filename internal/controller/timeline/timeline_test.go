// SPDX-License-Identifier: Apache-2.0

package timeline_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
)

// looks counts the requests that only a guard makes.
type looks struct {
	http.Handler
	count atomic.Int64
}

func (l *looks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("limit") == "1" {
		l.count.Add(1)
	}
	l.Handler.ServeHTTP(w, r)
}

// F36: at rest the guard reads nothing. When watches end early it looks until it knows what happened, and for a while longer.
func TestF36NothingIsReadAtRest(t *testing.T) {
	server := &storage{}
	server.is(1000, "new")
	counted := &looks{Handler: server}
	listener := httptest.NewServer(counted)
	t.Cleanup(listener.Close)
	guard := timeline.New(time.Now)
	config := &rest.Config{Host: listener.URL}
	guard.Wrap(config)
	guard.Reads(t, config)
	rewound := make(chan struct{}, 1)
	guard.OnRewind(func() { rewound <- struct{}{} })
	go func() { _ = guard.Start(t.Context()) }()
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := objects.Resource(v1alpha1.GroupVersion.WithResource("bundlesources"))
	timeout := int64(600)
	follow := func(revision string) <-chan watch.Event {
		watching, err := resource.Watch(t.Context(), metav1.ListOptions{ResourceVersion: revision, TimeoutSeconds: &timeout})
		if err != nil {
			t.Fatal(err)
		}
		return watching.ResultChan()
	}
	events := follow("900")
	eventually(t, "the first look", func() bool { return counted.count.Load() > 0 })
	abandoned, err := resource.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "900", TimeoutSeconds: &timeout})
	if err != nil {
		t.Fatal(err)
	}
	abandoned.Stop() // by the client: no disturbance
	time.Sleep(100 * time.Millisecond)
	if n := counted.count.Load(); n != 1 {
		t.Errorf("%d looks at rest, in a hundred intervals, want the first one only", n)
	}
	server.is(1500, "newer") // unnoticed, but the watch ends
	for range events {       //nolint:revive // until it has ended
	}
	eventually(t, "the revision is read when the watch has ended", func() bool { return counted.count.Load() > 2 })
	events = follow("2000") // from what an event had brought
	server.is(1700, "old")  // later than all that was read
	select {
	case <-rewound:
	case <-time.After(time.Minute):
		t.Error("the restored storage was not noticed")
	}
	for range events { //nolint:revive // until it has ended
	}
}

// storage is an API server with one source that can go back in time. Like the real one, it sends
// nothing on a watch from a future revision, and fails a list.
type storage struct {
	mu       sync.Mutex
	revision uint64
	value    string
	restored chan struct{} // closed when it is put back
	// deaf: watches are not ended then, as with a load balancer in between.
	deaf bool
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	revision, value, restored := s.revision, s.value, s.restored
	s.mu.Unlock()
	query := r.URL.Query()
	from, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	object := map[string]any{
		"apiVersion": "satchel.dev/v1alpha1", "kind": "BundleSource",
		"metadata": map[string]any{"name": "a", "namespace": "b", "resourceVersion": fmt.Sprint(revision), "labels": map[string]any{"value": value}},
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("watch") != "" && from > 0:
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		if s.deaf {
			restored = nil
		}
		select {
		case <-restored:
		case <-r.Context().Done():
		}
	case query.Get("watch") != "":
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
	case from > revision:
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`, http.StatusGatewayTimeout)
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "satchel.dev/v1alpha1", "kind": "BundleSourceList", "items": []any{object},
			"metadata": map[string]any{"resourceVersion": fmt.Sprint(revision)},
		})
	}
}

// is sets the revision of the storage.
func (s *storage) is(revision uint64, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision, s.value = revision, value
	if s.restored != nil {
		close(s.restored)
	}
	s.restored = make(chan struct{})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// F36: the storage goes back in time. Everything is listed again, also if watches stay open,
// handlers are called once, and later requests pass as usual.
func TestF36EverythingIsReadAgain(t *testing.T) {
	for name, deaf := range map[string]bool{"watches end": false, "watches go on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &storage{deaf: deaf}
			server.is(1000, "new")
			listener := httptest.NewServer(server)
			t.Cleanup(listener.Close)
			guard := timeline.New(time.Now)
			config := &rest.Config{Host: listener.URL}
			guard.Wrap(config)
			calls := make(chan struct{}, 10)
			guard.OnRewind(func() { calls <- struct{}{} })
			guard.Look(t, config)

			objects, err := dynamic.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			informers := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
			informer := informers.ForResource(v1alpha1.GroupVersion.WithResource("bundlesources")).Informer()
			informers.Start(t.Context().Done())
			cached := func() string {
				found, exists, err := informer.GetStore().GetByKey("b/a")
				if err != nil || !exists {
					return ""
				}
				return found.(*unstructured.Unstructured).GetLabels()["value"] //nolint:forcetypeassert // of a dynamic informer
			}
			eventually(t, "the cache is filled", func() bool { return cached() == "new" })
			guard.Look(t, config)
			if guard.Unsettled() || len(calls) > 0 {
				t.Error("time went back although nothing happened")
			}

			server.is(500, "old")
			guard.Look(t, config)
			if !guard.Unsettled() || len(calls) != 1 {
				t.Errorf("time went back and was noticed %d times", len(calls))
			}
			eventually(t, "the cache is as the storage is", func() bool { return cached() == "old" })
			server.is(501, "old")
			guard.Look(t, config)
			if len(calls) != 1 {
				t.Errorf("%d calls after time went on", len(calls))
			}
		})
	}
}

// F36: after the storage went back in time, a client may continue from a version only after
// a new list.
func TestF36VersionsOfBefore(t *testing.T) {
	server := &storage{}
	server.is(1000, "new")
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	guard := timeline.New(time.Now)
	config := &rest.Config{Host: listener.URL}
	guard.Wrap(config)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(query string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, listener.URL+"/apis/satchel.dev/v1alpha1/bundlesources"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode == http.StatusOK && request.URL.Query().Get("watch") == "" {
			_, _ = io.Copy(io.Discard, response.Body)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	want := func(query string, status int) {
		t.Helper()
		if got := get(query); got != status {
			t.Errorf("%q is answered with %d, want %d", query, got, status)
		}
	}
	guard.Look(t, config)
	want("?watch=true&resourceVersion=900", http.StatusOK)
	server.is(500, "old")
	guard.Look(t, config)
	want("?watch=true&resourceVersion=400", http.StatusGone)
	want("?resourceVersion=400", http.StatusGone)
	want("?limit=1", http.StatusOK) // the guard's own look
	want("?watch=true&resourceVersion=400", http.StatusGone)
	want("?labelSelector=x", http.StatusOK)
	want("?watch=true&resourceVersion=400", http.StatusGone)
	want("?watch=true&resourceVersion=500&labelSelector=x", http.StatusOK)
	want("?limit=500", http.StatusOK)
	want("?watch=true&resourceVersion=500", http.StatusOK)
}

// A nil guard detects nothing.
func TestNoGuard(t *testing.T) {
	var none *timeline.Guard
	none.OnRewind(func() { t.Error("called") })
	if none.Unsettled() {
		t.Error("unsettled")
	}
	if err := none.Source(nil, func() client.ObjectList { return nil }).Start(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
