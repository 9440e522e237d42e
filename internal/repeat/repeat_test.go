// SPDX-License-Identifier: Apache-2.0

package repeat

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/time/rate"
)

// F59: a request that can be repeated is, in place, with its body, as long as the budget lasts.
func TestF59RepeatsInPlace(t *testing.T) {
	const reset = -1
	for name, tc := range map[string]struct {
		method, path, contentType, body string
		status, failures, budget        int
		retryAfter                      string
		sent, answered                  int
	}{
		"read":                       {method: http.MethodGet, status: 504, failures: 3, budget: 9, sent: 4, answered: 200},
		"too often":                  {method: http.MethodGet, status: 504, failures: 9, budget: 9, sent: 8, answered: 504},
		"no budget":                  {method: http.MethodGet, status: 504, failures: 3, budget: 2, sent: 3, answered: 504},
		"apply":                      {method: http.MethodPatch, contentType: "application/apply-patch+yaml", status: 504, failures: 1, budget: 9, sent: 2, answered: 200},
		"merge patch":                {method: http.MethodPatch, contentType: "application/merge-patch+json", status: 504, failures: 1, budget: 9, sent: 2, answered: 200},
		"JSON patch":                 {method: http.MethodPatch, contentType: "application/json-patch+json", status: 504, failures: 1, budget: 9, sent: 1, answered: 504},
		"update":                     {method: http.MethodPut, status: 504, failures: 1, budget: 9, sent: 2, answered: 200},
		"watch":                      {method: http.MethodGet, path: "?watch=true", status: 504, failures: 1, budget: 9, sent: 1, answered: 504},
		"list":                       {method: http.MethodGet, path: "?watch=false&limit=500", status: 504, failures: 1, budget: 9, sent: 2, answered: 200},
		"delete of a UID":            {method: http.MethodDelete, body: `{"preconditions":{"uid":"a"}}`, status: 504, failures: 1, budget: 9, sent: 2, answered: 200},
		"delete of a name":           {method: http.MethodDelete, body: `{"preconditions":{}}`, status: 504, failures: 1, budget: 9, sent: 1, answered: 504},
		"create":                     {method: http.MethodPost, status: 504, failures: 1, budget: 9, sent: 1, answered: 504},
		"create as a dry run":        {method: http.MethodPost, path: "?dryRun=All", status: 504, failures: 1, budget: 9, sent: 2, answered: 200},
		"question about permissions": {method: http.MethodPost, path: "apis/authorization.k8s.io/v1/selfsubjectaccessreviews", status: 504, failures: 1, budget: 9, sent: 2, answered: 200},
		"bad gateway":                {method: http.MethodGet, status: 502, failures: 1, budget: 9, sent: 2, answered: 200},
		"unavailable":                {method: http.MethodGet, status: 503, failures: 1, budget: 9, sent: 2, answered: 200},
		"unavailable until":          {method: http.MethodGet, status: 503, failures: 1, budget: 9, retryAfter: "1", sent: 1, answered: 503},
		"too many requests":          {method: http.MethodGet, status: 429, failures: 1, budget: 9, sent: 2, answered: 200},
		"too many, with a time":      {method: http.MethodGet, status: 429, failures: 1, budget: 9, retryAfter: "1", sent: 1, answered: 429},
		"broken connection":          {method: http.MethodPatch, contentType: "application/apply-patch+yaml", status: reset, failures: 2, budget: 9, sent: 3, answered: 200},
		"broken while creating":      {method: http.MethodPost, status: reset, failures: 1, budget: 9, sent: 1, answered: reset},
		"other errors":               {method: http.MethodGet, status: 500, failures: 1, budget: 9, sent: 1, answered: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.body
			if want == "" && tc.method != http.MethodGet {
				want = "content"
			}
			sent := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); string(body) != want {
					t.Errorf("sent %q", body)
				}
				if sent++; sent > tc.failures {
					return
				}
				if tc.status == reset {
					panic(http.ErrAbortHandler)
				}
				if tc.retryAfter != "" {
					w.Header().Set("Retry-After", tc.retryAfter)
				}
				w.WriteHeader(tc.status)
			}))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL+"/"+tc.path, strings.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", tc.contentType)
			outer := only(rate.NewLimiter(0, tc.budget))
			// as where a client with the configuration of another one is wrapped as well
			response, err := transport{next: transport{next: http.DefaultTransport, budget: only(rate.NewLimiter(0, 99))}, budget: outer}.RoundTrip(request)
			answered := reset
			if err == nil {
				answered = response.StatusCode
				_ = response.Body.Close()
			}
			if sent != tc.sent || answered != tc.answered {
				t.Errorf("sent %d times, answered %d (%v)", sent, answered, err)
			}
		})
	}
}

// only is the budget of all servers.
func only(limiter *rate.Limiter) func(string) *rate.Limiter {
	return func(string) *rate.Limiter { return limiter }
}

// F59: a server that never answers uses up its own budget, and not that of others; as many servers as tenants may name have one.
func TestF59BudgetOfAServer(t *testing.T) {
	p := perHost{limiters: map[string]*rate.Limiter{}}
	one := p.of("a")
	if one == p.of("b") || one != p.of("a") {
		t.Error("each server has a budget of its own")
	}
	for i := range 2 * mostHosts {
		p.of(strconv.Itoa(i))
	}
	if len(p.limiters) > mostHosts+1 || p.of("one more") != p.of("another") {
		t.Errorf("%d budgets", len(p.limiters))
	}
}
