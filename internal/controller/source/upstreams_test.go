// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// faulty is a web server that answers well until it is told to fail.
func faulty(t *testing.T, content []byte, fail http.HandlerFunc) (address string, failing *atomic.Bool) {
	t.Helper()
	failing = &atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if failing.Load() {
			fail(w, request)
			return
		}
		http.ServeContent(w, request, "b.tar", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return server.URL, failing
}

// raw hijacks a connection and writes the given lines.
func raw(lines string, then func(net.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write([]byte(lines))
		if then != nil {
			then(conn)
		}
	}
}

// drip sends a byte from time to time until the other side has enough.
func drip(conn net.Conn) {
	for {
		if _, err := conn.Write([]byte("x")); err != nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// reset ends a connection at once.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// F16: a token expires. The condition names the Secret; a new token is used soon after the
// Secret has it, and the old one is not sent again, over any connection.
func TestF16TokensExpire(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	content := pack(t, files("a.yaml", "one"))
	var mu sync.Mutex
	valid, since := "CANARY-first", time.Now()
	old := 0 // requests with an old token since the new one was accepted
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
		good := token == valid && time.Since(since) < 30*time.Second
		if valid == "CANARY-second" && token == "CANARY-first" {
			old++
		}
		mu.Unlock()
		if !good {
			http.Error(w, "expired", http.StatusUnauthorized)
			return
		}
		http.ServeContent(w, request, "b.tar", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	r.secret(t, namespace, "token", map[string]string{"bearerToken": "CANARY-first"})
	key := r.create(t, namespace, "archive", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{
		URL: server.URL + "/b.tar", SecretRef: &v1alpha1.LocalReference{Name: "token"},
	}}}, every(time.Second))
	r.ready(t, key)
	mu.Lock()
	since = since.Add(-time.Minute) // half a minute is over
	mu.Unlock()
	failed := r.unready(t, key, v1alpha1.ReasonUnauthorized)
	if text := describe(failed); !strings.Contains(text, "secret "+namespace+"/token") || strings.Contains(text, "CANARY") || failed.Status.Artifact == nil {
		t.Errorf("the status should name the Secret and nothing that is in it:\n%s", text)
	}
	r.secret(t, namespace, "token", map[string]string{"bearerToken": "CANARY-second"})
	mu.Lock()
	valid, since, old = "CANARY-second", time.Now(), 0
	mu.Unlock()
	changed := time.Now()
	r.ready(t, key)
	took := time.Since(changed)
	mu.Lock()
	old = 0
	mu.Unlock()
	r.refresh(t, key)
	r.refresh(t, key)
	mu.Lock()
	defer mu.Unlock()
	t.Logf("recovered %s after the Secret changed", took.Round(time.Millisecond))
	if took > 60*time.Second || old > 0 {
		t.Errorf("recovered after %s; %d requests with the old token after that", took, old)
	}
}

// F17: a tag that moves between resolve and pull does not matter: the resolved digest is
// published. A deleted tag removes nothing.
func TestF17MovedAndDeletedTags(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	first, err := r.registry.Push(t.Context(), "moving:v1", files("a", "one"))
	if err != nil {
		t.Fatal(err)
	}
	var moved, deleted atomic.Bool
	front := r.fronted(t, func(w http.ResponseWriter, request *http.Request) bool {
		manifest := strings.HasSuffix(request.URL.Path, "/manifests/v1")
		switch {
		case deleted.Load() && manifest:
			w.WriteHeader(http.StatusNotFound)
			return true
		case !manifest && strings.Contains(request.URL.Path, "/manifests/") && moved.CompareAndSwap(false, true):
			if _, err := r.registry.Push(request.Context(), "moving:v1", files("a", "two")); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	key := r.create(t, namespace, "tag", image(front+"/moving:v1"), every(time.Hour))
	s := r.ready(t, key)
	if !moved.Load() || s.Status.Resolved[0].Digest != first {
		t.Errorf("the tag moved (%t) from %s, and published is\n%s", moved.Load(), first, describe(s))
	}
	second := r.refresh(t, key)
	if !conditions.IsTrue(second, meta.ReadyCondition) || second.Status.Resolved[0].Digest == first || second.Status.Artifact.Revision == s.Status.Artifact.Revision {
		t.Errorf("the moved tag is not followed:\n%s", describe(second))
	}
	deleted.Store(true)
	gone := r.refresh(t, key)
	if conditions.GetReason(gone, meta.ReadyCondition) != v1alpha1.ReasonNotFound || gone.Status.Artifact == nil {
		t.Errorf("after the tag was deleted:\n%s", describe(gone))
	}
	download(t, gone.Status.Artifact)
}

// fronted puts a handler before the registry, which tells whether it has answered.
func (r *rig) fronted(t *testing.T, before func(http.ResponseWriter, *http.Request) bool) (host string) {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: r.registry.Host()})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !before(w, request) {
			proxy.ServeHTTP(w, request)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// TestT16ChangingFailures: an upstream with a different error each time does not cause an event each
// time.
func TestT16ChangingFailures(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(400 + count.Add(1)%50 + 5)) // a status of its own each time
	}))
	t.Cleanup(server.Close)
	key := r.create(t, namespace, "loud", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}}, every(time.Hour))
	for range 25 {
		r.refresh(t, key)
	}
	if got := r.eventsAbout(t, key); got == 0 || got > 12 {
		t.Errorf("%d events about 25 failures, want about 10", got)
	}
}

// eventsAbout counts the warnings about a source.
func (r *rig) eventsAbout(t *testing.T, key client.ObjectKey) int {
	t.Helper()
	var list eventsv1.EventList
	if err := r.admin.List(t.Context(), &list, client.InNamespace(key.Namespace)); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, event := range list.Items {
		if event.Regarding.Name == key.Name {
			count++
		}
	}
	return count
}
