// SPDX-License-Identifier: Apache-2.0

package timeline_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/controller/timeline"
)

// stating is a server that states a time.
type stating struct{ date time.Time }

func (s *stating) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Date", s.date.UTC().Format(http.TimeFormat))
}

// TestF60ClockOfTheAPIServer: where the clock of the machine is wrong, or was set, the time is that of the API server; what other
// servers state, and what passes through the API server, counts for nothing.
func TestF60ClockOfTheAPIServer(t *testing.T) {
	const year = 365 * 24 * time.Hour
	const mine = "/api/v1/namespaces"
	cases := map[string]struct {
		reason string
		path   string
		off    time.Duration // of the machine's clock at the answer
		set    time.Duration // and how much it is set forward afterwards, which the monotonic clock does not show
		other  bool          // the answer is another server's
		want   time.Duration // the time, an hour later, as a difference from the right one
	}{
		"agrees":           {"both are right", mine, 0, 0, false, 0},
		"a little off":     {"within what synchronized clocks differ by, and in full seconds", mine, 20 * time.Second, 0, false, 20 * time.Second},
		"ahead":            {"the machine is two years ahead", mine, 2 * year, 0, false, 0},
		"behind":           {"or behind", mine, -2 * year, 0, false, 0},
		"set forward":      {"since the last answer", mine, 0, 2 * year, false, 0},
		"set back":         {"since the last answer", mine, 0, -2 * year, false, 0},
		"own kinds":        {"of the API server", "/apis/satchel.dev/v1alpha1/bundledeployments", 2 * year, 0, false, 0},
		"a lease":          {"is renewed every few seconds", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", 2 * year, 0, false, 0},
		"another server":   {"a kubeconfig of a tenant leads to it", mine, 2 * year, 0, true, 2 * year},
		"aggregated":       {"a tenant's server may be behind an APIService", "/apis/metrics.k8s.io/v1beta1/nodes", 2 * year, 0, false, 2 * year},
		"proxied":          {"a Pod's answer", "/api/v1/namespaces/a/pods/b/proxy/", 2 * year, 0, false, 2 * year},
		"not asked so far": {"there is no other clock", "", 2 * year, 0, false, 2 * year},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			right := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
			set, passed := tc.off, time.Duration(0)
			server := &stating{date: right}
			listener, elsewhere := httptest.NewServer(server), httptest.NewServer(server)
			t.Cleanup(listener.Close)
			t.Cleanup(elsewhere.Close)
			guard := timeline.New(func() time.Time { return right.Add(passed + set) })
			guard.Passes(func() time.Duration { return passed })
			config := &rest.Config{Host: listener.URL}
			guard.Wrap(config)
			transport, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			if tc.path != "" {
				url := listener.URL
				if tc.other {
					url = elsewhere.URL
				}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(url, "/")+tc.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
			}
			set, passed = set+tc.set, time.Hour
			if got := guard.Now().Round(0).Sub(right.Add(time.Hour).Round(0)); (got - tc.want).Abs() > time.Second {
				t.Errorf("the time is off by %s, want %s: %s", got, tc.want, tc.reason)
			}
		})
	}
}
