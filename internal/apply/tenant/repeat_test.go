// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/time/rate"
)

// F59: a request that can be repeated is, in place, with its body, as long as the budget lasts.
func TestF59RepeatsInPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		method, query, contentType string
		status, failures, budget   int
		sent, answered             int
	}{
		"read":         {http.MethodGet, "", "", 504, 3, 9, 4, 200},
		"too often":    {http.MethodGet, "", "", 504, 9, 9, 5, 504},
		"no budget":    {http.MethodGet, "", "", 504, 3, 2, 3, 504},
		"apply":        {http.MethodPatch, "", "application/apply-patch+yaml", 504, 1, 9, 2, 200},
		"merge patch":  {http.MethodPatch, "", "application/merge-patch+json", 504, 1, 9, 1, 504},
		"watch":        {http.MethodGet, "?watch=true", "", 504, 1, 9, 1, 504},
		"delete":       {http.MethodDelete, "", "", 504, 1, 9, 1, 504},
		"other errors": {http.MethodGet, "", "", 503, 1, 9, 1, 503},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); string(body) != "content" {
					t.Errorf("sent %q", body)
				}
				if sent++; sent <= tc.failures {
					w.WriteHeader(tc.status)
				}
			}))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL+tc.query, strings.NewReader("content"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", tc.contentType)
			response, err := repeatingTransport{next: http.DefaultTransport, budget: rate.NewLimiter(0, tc.budget)}.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			if sent != tc.sent || response.StatusCode != tc.answered {
				t.Errorf("sent %d times, answered %d", sent, response.StatusCode)
			}
		})
	}
}
