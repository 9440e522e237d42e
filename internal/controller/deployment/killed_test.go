// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
)

// roundTrip is a connection as a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// changes tells the requests that change something, by patching it, from others.
func changes(request *http.Request) bool {
	return request.Method == http.MethodPatch && request.URL.Query().Get("dryRun") == ""
}

// dying are connections that end once the API server has carried a write out, before
// it can answer, and stay dead. Who sent nothing after it is as who died before the
// next one.
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

// killed kills the controller after each of the writes that the succession of an
// authority takes, another one each time. The next process must go on with it, and no
// webhook may ever be without trust. It counts the kills.
func (s *selfSigned) killed(t *testing.T, settle func()) int {
	t.Helper()
	for kills := 0; ; kills++ {
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

// settleSuspended reconciles once and then has nothing to complain about.
func (s *selfSigned) settleSuspended(t *testing.T) {
	t.Helper()
	s.reconcile(t)
	if warnings := s.deployment(t).Status.Warnings; len(warnings) > 0 {
		t.Fatalf("warnings although nobody changed anything: %q", warnings)
	}
}

func TestKilledDuringARotationWhileSuspended(t *testing.T) {
	t.Parallel()
	s := newRig(t).selfSigned(t)
	s.suspend(t)
	if kills := s.killed(t, func() { s.settleSuspended(t) }); kills < leastKills {
		t.Errorf("%d kills, want %d at least", kills, leastKills)
	}
}

// Nobody looked for so long that the authority ended. Another one signs at once, and
// is trusted wherever the controller was killed.
func TestKilledMakingAnAuthorityWhileSuspended(t *testing.T) {
	t.Parallel()
	s := newRig(t).selfSigned(t)
	s.suspend(t)
	for kills := 0; ; kills++ {
		s.now = leaf(t, s.authority(t)).NotAfter.Add(day)
		death := &dying{left: kills + 1}
		s.restart(t, death.wrap)
		_, _ = s.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key})
		s.restart(t, nil)
		s.settleSuspended(t)
		s.works(t)
		if death.dead {
			continue
		}
		if kills < leastKills-3 {
			t.Errorf("%d kills, want one at each of five objects, and of the status before and after", kills)
		}
		return
	}
}

// What somebody changes after the controller was killed stays as it is. It trusts whom
// it should already, so that the renewal goes on.
func TestChangedAfterAKilledRenewalWhileSuspended(t *testing.T) {
	t.Parallel()
	s := newRig(t).selfSigned(t)
	s.suspend(t)
	s.beforeSuccession(t, func() { s.settleSuspended(t) })
	first := s.authority(t).Data["tls.crt"]
	death := &dying{left: 6} // the status before, and five objects
	s.restart(t, death.wrap)
	_, _ = s.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key})
	s.restart(t, nil)
	check := trusting(s.group)[0]
	s.r.setFailurePolicy(t, check, "Fail")
	s.r.patch(t, object("v1", "Secret", s.namespace, servingSecret), `{"metadata":{"labels":null}}`)
	for range 2 { // the successor is trusted, and then signs
		s.settleSuspended(t)
		s.works(t)
		s.now = s.now.Add(2 * day)
	}
	if signs := s.authority(t).Data["tls.crt"]; !death.dead || bytes.Equal(signs, first) {
		t.Errorf("the successor does not sign; killed: %v", death.dead)
	}
	if labels := s.serving(t).Labels; failurePolicy(s.r.must(t, check)) != "Fail" || len(labels) > 0 {
		t.Errorf("what somebody changed was reverted: labels %v", labels)
	}
}

// Somebody changes the status while certificates are renewed, so that it
// cannot be stored: before the first write, or after it. What was written is
// known as our own at the next look, which comes soon.
func TestSuspendedDeploymentChangedDuringARenewal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for at, path := range map[string]string{"before the first write": "/bundledeployments/", "after the first write": "/secrets/"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s := r.selfSigned(t)
			s.suspend(t)
			s.beforeSuccession(t, func() { s.settleSuspended(t) })
			first := s.authority(t).Data["tls.crt"]
			s.restart(t, s.editing(t, path))
			mark := r.mark(t)
			if result := s.reconcile(t); result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
				t.Errorf("the status could not be stored, and the deployment comes back after %s", result.RequeueAfter)
			}
			if written := s.written(t, mark); (len(written) > 0) != (path == "/secrets/") {
				t.Errorf("written: %v", written)
			}
			for range 2 { // the successor is trusted, and then signs
				s.settleSuspended(t)
				s.works(t)
				s.now = s.now.Add(2 * day)
			}
			if signs := s.authority(t).Data["tls.crt"]; bytes.Equal(signs, first) {
				t.Error("the successor does not sign, although everything trusts it")
			}
		})
	}
}

// editing are connections that change the status of the deployment just before the first
// write to a path. A change of metadata alone would not keep the status from being stored,
// and one of the spec would wake the running controller, whose clock shows another year.
func (s *selfSigned) editing(t *testing.T, path string) transport.WrapperFunc {
	t.Helper()
	var once sync.Once
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			if changes(request) && strings.Contains(request.URL.Path, path) {
				once.Do(func() {
					patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"lastAttemptedRevision":"of somebody"}}`))
					if err := s.r.admin.Status().Patch(t.Context(), s.deployment(t), patch); err != nil {
						t.Error(err)
					}
				})
			}
			return next.RoundTrip(request)
		})
	}
}
