// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestStatusError(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[int]Reason{
		404: NotFound, 410: NotFound, 401: Unauthorized, 403: Unauthorized, 429: RateLimited, 408: Timeout,
		500: Unreachable, 503: Unreachable, 504: Timeout, 206: Unreachable, 400: Unreachable,
	}
	for code, want := range cases {
		if got := StatusError(code, nil, ""); got.Reason != want || !strings.Contains(got.Error(), fmt.Sprint(code)) {
			t.Errorf("%d: %v %v", code, got.Reason, got)
		}
	}
	if got := StatusError(429, http.Header{"Retry-After": {"30"}}, "TOOMANYREQUESTS"); got.RetryAfter != 30*time.Second ||
		!strings.Contains(got.Error(), "429 TOOMANYREQUESTS") {
		t.Errorf("%v %v", got.RetryAfter, got)
	}
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "x": 0, "99999999": time.Hour, "Thu, 01 Jan 2026 00:01:00 GMT": time.Minute,
		"Wed, 31 Dec 2025 00:00:00 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
