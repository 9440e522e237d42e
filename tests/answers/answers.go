// SPDX-License-Identifier: Apache-2.0

// Package answers makes clients of API servers that give set answers, for tests of what a control plane answers seldom.
package answers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Client is the client of a ServiceAccount team/installer for a deployment, on a server.
func Client(t *testing.T, server http.Handler) *tenant.Client {
	t.Helper()
	started := httptest.NewServer(server)
	t.Cleanup(started.Close)
	pool, err := tenant.NewPool(&rest.Config{Host: started.URL}, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := pool.Client(tenant.Identity{Namespace: "team", ServiceAccount: "installer"})
	if err != nil {
		t.Fatal(err)
	}
	return client.For("app")
}

// Server has an answer for each path of an API, and for the pages of its lists after the first one at the path, a question mark and
// the token. What it has no answer for does not exist.
type Server struct {
	Objects  map[string]any    // is sent as JSON
	Refusals map[string]Reason // instead

	mutex sync.Mutex
	asked map[string]int
}

// Reason is why a request is refused, and its code.
type Reason struct {
	Code   int
	Reason metav1.StatusReason
}

// Refusals.
var (
	NotFound   = Reason{http.StatusNotFound, metav1.StatusReasonNotFound}
	Forbidden  = Reason{http.StatusForbidden, metav1.StatusReasonForbidden}
	BadRequest = Reason{http.StatusBadRequest, metav1.StatusReasonBadRequest} // it is not repeated
)

// Asked is how often there was a request for a path.
func (s *Server) Asked(path string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.asked[path]
}

// ServeHTTP answers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if token := r.URL.Query().Get("continue"); token != "" {
		path += "?" + token
	}
	s.mutex.Lock()
	if s.asked == nil {
		s.asked = map[string]int{}
	}
	s.asked[path]++
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer, found := s.Objects[path]
	refused := s.Refusals[path]
	if !found && refused.Code == 0 {
		refused = NotFound
	}
	if refused.Code != 0 {
		w.WriteHeader(refused.Code)
		answer = metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(refused.Code), Reason: refused.Reason, Message: "refused as " + string(refused.Reason),
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}
