// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// errLeaseLost is the answer to a write of a process that lost its lease.
var errLeaseLost = errors.New("not sent: this process has not renewed its lease in time, so another one may be the leader")

// leading prevents writes of a process that was leader, stalled, and continues: another
// one may lead once the duration of the lease since its last renewal is over. The
// election also ends such a process, but only when its timer fires, and a running apply
// may continue before that.
type leading struct {
	leases   string // path of the leases of the controllers
	duration time.Duration
	now      func() time.Time

	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was begun; zero before the first
}

// newLeading watches the renewals of the lease in a namespace.
func newLeading(namespace string, duration time.Duration) *leading {
	return &leading{
		leases:   "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases",
		duration: duration, now: time.Now,
	}
}

// wrap checks the requests of a client.
func (l *leading) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		switch {
		case !changes(request):
			return next.RoundTrip(request)
		case l.renews(request):
			return l.renew(next, request)
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

// renews tells whether a request belongs to the election, and is not a write of a lease
// for a tenant, who cannot set the user agent.
func (l *leading) renews(request *http.Request) bool {
	return strings.HasPrefix(request.URL.Path, l.leases) && strings.HasSuffix(request.UserAgent(), "leader-election") &&
		request.Header.Get("Impersonate-User") == ""
}

func (l *leading) renew(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	began := l.now()
	response, err := next.RoundTrip(request)
	if err == nil && response.StatusCode < http.StatusMultipleChoices {
		l.mu.Lock()
		l.renewed = began
		l.mu.Unlock()
	}
	return response, err
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
