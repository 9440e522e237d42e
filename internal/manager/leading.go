// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// errLeaseLost is the answer to a write of a process that lost its lease.
var errLeaseLost = errors.New("not sent: this process has not renewed its lease in time, so another one may be the leader")

// leading prevents writes of a process that was leader, stalled, and continues: another
// one may lead once the duration of the lease since its last renewal is over. The
// election also ends such a process, but only when its timer fires, and a running apply
// may continue before that.
//
// It also remembers whether the API server refuses the requests of the election. Without them no replica ever leads and
// nothing is reconciled, and the election only logs that it tries again.
type leading struct {
	leases   string // path of the leases of the controllers
	name     string // of the lease
	duration time.Duration
	now      func() time.Time

	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was begun; zero before the first
	refused string    // the request of the election that the API server refused last; "" once one was answered
}

// newLeading watches the requests of the election for a lease in a namespace.
func newLeading(namespace, name string, duration time.Duration) *leading {
	return &leading{
		leases: "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases", name: namespace + "/" + name,
		duration: duration, now: time.Now,
	}
}

// wrap checks the requests of a client.
func (l *leading) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		switch {
		case l.elects(request):
			return l.elect(next, request)
		case !changes(request):
			return next.RoundTrip(request)
		case l.over():
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, errLeaseLost
		}
		return next.RoundTrip(request)
	})
}

// changes tells whether a request may change something.
func changes(request *http.Request) bool {
	return request.Method != http.MethodGet && request.Method != http.MethodHead
}

// elects tells whether a request belongs to the election, and is not one for a tenant, who cannot set the user agent.
func (l *leading) elects(request *http.Request) bool {
	return strings.HasPrefix(request.URL.Path, l.leases) && strings.HasSuffix(request.UserAgent(), "leader-election") &&
		request.Header.Get("Impersonate-User") == ""
}

// elect does a request of the election, and remembers a renewal or a refusal.
func (l *leading) elect(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	began := l.now()
	response, err := next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	l.mu.Lock()
	before := l.refused
	l.refused = refusal(request.Method, response.StatusCode)
	if response.StatusCode < http.StatusMultipleChoices && changes(request) {
		l.renewed = began
	}
	l.mu.Unlock()
	// The probe answers without the reason, so the log has it.
	if err := l.check(nil); err != nil && before == "" {
		ctrl.Log.WithName("leader-election").Error(err, "not ready")
	}
	return response, nil
}

// refusal describes an answer after which the election cannot succeed until an administrator changes something; "" for all others.
// A lease that is read before it exists is no refusal, but one that cannot be created in its namespace is.
func refusal(method string, status int) string {
	missing := status == http.StatusNotFound && method == http.MethodPost
	if !missing && status != http.StatusForbidden && status != http.StatusUnauthorized {
		return ""
	}
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update"}[method]
	return fmt.Sprintf("%s was answered with %d %s", verb, status, http.StatusText(status))
}

// check is a readiness check: it fails while the API server refuses the requests of the election.
func (l *leading) check(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == "" {
		return nil
	}
	return fmt.Errorf("this replica cannot become the leader, so it reconciles nothing: the Lease %s cannot be used (%s). "+
		"Permit get, create and update of Leases with that name to the controller's ServiceAccount, as config/rbac/leader-election.yaml does; "+
		"with --watch-label-selector each selector has a Lease of its own", l.name, l.refused)
}

// over tells whether another process may be the leader by now.
func (l *leading) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && l.now().Sub(l.renewed) > l.duration
}

// roundTripper is a function that does requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
