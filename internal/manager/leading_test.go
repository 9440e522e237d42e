// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// passed counts what reaches the API server, which answers with a status.
type passed struct{ count, status int }

func (p *passed) RoundTrip(*http.Request) (*http.Response, error) {
	p.count++
	return &http.Response{StatusCode: p.status, Body: http.NoBody}, nil
}

// Writes after the end of the lease are refused, whichever user they impersonate; reads
// are not, nor writes of a process that was never the leader.
func TestWritesEndWithTheLease(t *testing.T) {
	const lease = "/apis/coordination.k8s.io/v1/namespaces/satchel-system/leases/c"
	renewal := request{http.MethodPut, lease, "c/v1/leader-election", ""}
	write := request{http.MethodPatch, "/api/v1/namespaces/a/configmaps/b", "c/v1", "system:serviceaccount:a:installer"}
	cases := map[string]struct {
		reason  string
		before  request
		status  int
		elapsed time.Duration
		then    request
		stopped bool
	}{
		"leads":         {"a leader writes", renewal, 200, 30 * time.Second, write, false},
		"stalled":       {"another one may lead by now", renewal, 200, 36 * time.Second, write, true},
		"reads":         {"reads are harmless", renewal, 200, time.Hour, request{http.MethodGet, write.path, "", ""}, false},
		"renews late":   {"the election decides that by itself", renewal, 200, time.Hour, renewal, false},
		"never led":     {"without a lease nothing is counted: a replica that waits answers requests for artifacts", write, 200, time.Hour, write, false},
		"not renewed":   {"a refused renewal is none, and there was none before", renewal, 409, time.Hour, write, false},
		"tenant's":      {"what a tenant writes to a lease is no renewal", request{http.MethodPut, lease, "c/v1/leader-election", "system:serviceaccount:a:b"}, 200, time.Hour, write, false},
		"other clients": {"nor what another client of this process writes", request{http.MethodPut, lease, "c/v1", ""}, 200, time.Hour, write, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			l := newLeading("satchel-system", "c", 35*time.Second)
			l.now = func() time.Time { return now }
			server := &passed{status: tc.status}
			client := l.wrap(server)
			if err := tc.before.do(t, client); err != nil {
				t.Fatal(err)
			}
			now = now.Add(tc.elapsed)
			err := tc.then.do(t, client)
			if stopped := errors.Is(err, errLeaseLost); stopped != tc.stopped || server.count != 2 != tc.stopped {
				t.Errorf("%v, and %d requests reached the server: %s", err, server.count, tc.reason)
			}
		})
	}
}

type request struct{ method, path, agent, as string }

func (r request) do(t *testing.T, client http.RoundTripper) error {
	t.Helper()
	made := httptest.NewRequestWithContext(t.Context(), r.method, "https://k"+r.path, nil)
	made.Header.Set("User-Agent", r.agent)
	if r.as != "" {
		made.Header.Set("Impersonate-User", r.as)
	}
	answer, err := client.RoundTrip(made)
	if err == nil {
		_ = answer.Body.Close()
	}
	return err
}

// A replica is not ready while its election is refused, and says what is missing; one that waits for another leader is ready.
func TestReadinessSaysThatTheLeaseIsRefused(t *testing.T) {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/satchel-system/leases"
	agent := "c/v1/leader-election"
	get := request{http.MethodGet, leases + "/c", agent, ""}
	create := request{http.MethodPost, leases, agent, ""}
	update := request{http.MethodPut, leases + "/c", agent, ""}
	cases := map[string]struct {
		reason  string
		request request
		status  int
		want    string
	}{
		"standby":          {"another replica leads", get, 200, ""},
		"not yet":          {"the lease is created next", get, 404, ""},
		"leader":           {"it was renewed", update, 200, ""},
		"conflict":         {"another replica was faster", update, 409, ""},
		"busy":             {"the API server limits requests", get, 429, ""},
		"failing":          {"the API server fails, which no permission helps", update, 503, ""},
		"get":              {"the name of the lease is not permitted", get, 403, "get was answered with 403 Forbidden"},
		"create":           {"create is not permitted", create, 403, "create was answered with 403 Forbidden"},
		"update":           {"a leader has lost the permission", update, 403, "update was answered with 403 Forbidden"},
		"unauthenticated":  {"the token is not valid", get, 401, "get was answered with 401 Unauthorized"},
		"no namespace":     {"--namespace names one that does not exist", create, 404, "create was answered with 404 Not Found"},
		"as another user":  {"a tenant's request says nothing about the election", request{http.MethodGet, leases + "/c", agent, "system:serviceaccount:a:b"}, 403, ""},
		"of other clients": {"nor does one of another client", request{http.MethodGet, leases + "/c", "c/v1", ""}, 403, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLeading("satchel-system", "c", 35*time.Second)
			if err := tc.request.do(t, l.wrap(&passed{status: tc.status})); err != nil {
				t.Fatal(err)
			}
			err := l.check(nil)
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "satchel-system/c")) {
				t.Errorf("readiness: %v, want one with %q: %s", err, tc.want, tc.reason)
			}
			if err := get.do(t, l.wrap(&passed{status: 200})); err != nil {
				t.Fatal(err)
			}
			if err := l.check(nil); err != nil {
				t.Errorf("not ready after the lease could be read: %v", err)
			}
		})
	}
}
