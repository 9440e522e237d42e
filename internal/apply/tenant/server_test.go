// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// server is a small API server that records requests and their users.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // "METHOD path user"
	kinds    []string // resources of v1
	warning  string
	failing  string // a group with failing discovery
	padding  int    // bytes of blanks before each answer
	gone     bool   // there are no accounts
	hold     func(*http.Request)
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{kinds: []string{"ConfigMap"}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		hold(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Impersonate-User")))
	var answer map[string]any
	switch r.URL.Path {
	case "/api":
		answer = map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		groups := []any{}
		if s.failing != "" {
			version := map[string]any{"groupVersion": s.failing + "/v1", "version": "v1"}
			groups = append(groups, map[string]any{"name": s.failing, "versions": []any{version}, "preferredVersion": version})
		}
		answer = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	case "/api/v1/namespaces/kube-system":
		answer = map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"name": "kube-system", "uid": "uid-of-system"}}
	case "/api/v1":
		var resources []any
		for _, kind := range s.kinds {
			resources = append(resources, map[string]any{"name": strings.ToLower(kind) + "s", "kind": kind, "namespaced": true, "verbs": []string{"list"}})
		}
		answer = map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": resources}
	case "/api/v1/namespaces/shop/serviceaccounts/installer":
		if s.gone {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		answer = map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"name": "installer"}}
	default:
		if s.failing != "" && strings.HasPrefix(r.URL.Path, "/apis/"+s.failing) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answer = map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "one"}}
	}
	if s.warning != "" {
		w.Header().Add("Warning", `299 - "`+s.warning+`"`)
	}
	w.Header().Set("Content-Type", "application/json")
	if s.padding > 0 {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close() //nolint:errcheck // the client may be gone
		_, _ = packed.Write(bytes.Repeat([]byte(" "), s.padding))
		_ = json.NewEncoder(packed).Encode(answer)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *server) seen(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, request := range s.requests {
		if strings.HasPrefix(request, prefix) {
			found = append(found, request)
		}
	}
	return found
}

// config is the controller's configuration for the server.
func (s *server) config() *rest.Config { return &rest.Config{Host: s.URL} }
