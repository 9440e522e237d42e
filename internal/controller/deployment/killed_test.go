// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"errors"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
)

// roundTrip is a connection as a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// changes tells the requests that change something, by patching or deleting it, from others.
func changes(request *http.Request) bool {
	return (request.Method == http.MethodPatch || request.Method == http.MethodDelete) && request.URL.Query().Get("dryRun") == ""
}

// dying are connections that break after the API server has executed a write, before it
// answers, and stay broken. That is the same as a crash before the next write.
type dying struct {
	mu   sync.Mutex
	left int
	dead bool
}

var errDead = errors.New("the controller was killed")

func (d *dying) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		dead, last := d.hit(request)
		if dead {
			return nil, errDead
		}
		response, err := next.RoundTrip(request)
		if last && err == nil {
			_ = response.Body.Close()
			return nil, errDead
		}
		return response, err
	})
}

// hit counts a request: whether all was over before, and whether it is over now.
func (d *dying) hit(request *http.Request) (dead, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dead = d.dead
	if changes(request) && !dead {
		d.left--
		last = d.left == 0
	}
	d.dead = dead || last
	return dead, last
}

// restart goes on with another process at the same time.
func (s *selfSigned) restart(t *testing.T, wrap transport.WrapperFunc) {
	t.Helper()
	now := s.now
	s.driver = s.r.drive(t, s.key, wrap)
	s.now = now
}

// beforeSuccession moves to a day after the authority is due to have a successor,
// with everything else in order.
func (s *selfSigned) beforeSuccession(t *testing.T, settle func()) {
	t.Helper()
	due := leaf(t, s.authority(t)).NotAfter.Add(-certificate.Succession)
	s.now = due.Add(-30 * day)
	settle()
	s.now = due.Add(day)
	s.works(t)
}

// killed kills the controller after each write of a CA rotation, a different one each
// time. The next process must continue, and no webhook may ever be without trust. It
// counts the kills.
func (s *selfSigned) killed(t *testing.T, settle func()) int {
	t.Helper()
	for kills := 0; ; kills += betweenKills() {
		s.beforeSuccession(t, settle)
		first := s.authority(t).Data["tls.crt"]
		death := &dying{left: kills + 1}
		for range 2 { // the successor is trusted, and then signs
			if !death.dead {
				s.restart(t, death.wrap)
				_, _ = s.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key})
				s.works(t)
				s.restart(t, nil)
			}
			settle()
			s.works(t)
			s.now = s.now.Add(2 * day)
		}
		if signs := s.authority(t).Data["tls.crt"]; bytes.Equal(signs, first) {
			t.Fatalf("killed after write %d, the successor does not sign in the end", kills+1)
		}
		if !death.dead {
			return kills
		}
	}
}

// leastKills is one at each of the writes: to five objects until the successor is
// trusted, to the authority when it signs, and to the status before and after both.
const leastKills = 10

func TestKilledDuringARotation(t *testing.T) {
	t.Parallel()
	s := newRig(t).selfSigned(t)
	if kills := s.killed(t, func() { s.ready(t) }); kills < leastKills {
		t.Errorf("%d kills, want %d at least", kills, leastKills)
	}
}
