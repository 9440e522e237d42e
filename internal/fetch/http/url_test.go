// SPDX-License-Identifier: Apache-2.0

package http

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestResolve(t *testing.T) {
	var method atomic.Value
	etag := "\"1\""
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		method.Store(r.Method)
		w.Header().Set("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
		switch r.URL.Path {
		case "/etag":
			w.Header().Set("ETag", etag)
		case "/long":
			w.Header().Set("ETag", `"`+strings.Repeat("x", 5000)+`"`)
		case "/none":
			w.Header().Del("Last-Modified")
		case "/405":
			w.WriteHeader(405)
		case "/501":
			w.WriteHeader(501)
		case "/404":
			w.WriteHeader(404)
		}
		if r.Method == http.MethodGet {
			_, _ = w.Write(packed(t, "a", "1"))
		}
	})
	cases := map[string]struct {
		reason string
		want   string
		err    fetch.Reason
	}{
		"etag":  {"the better validator", `"1"`, ""},
		"other": {"the older one", "Thu, 01 Jan 2026 00:00:00 GMT", ""},
		"long":  {"bounded", fetch.SHA256([]byte(`"` + strings.Repeat("x", 5000) + `"`)).String(), ""},
		"none":  {"downloaded each time", "", ""},
		"405":   {"downloaded each time", "", ""},
		"501":   {"downloaded each time", "", ""},
		"404":   {"gone", "", fetch.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := New(Options{URL: url + "/" + name, Client: client(t), Limits: fetch.DefaultLimits()})
			if err != nil {
				t.Fatal(err)
			}
			resolved, err := f.Resolve(context.Background())
			if fetch.ReasonOf(err) != tc.err || resolved.Validator != tc.want || resolved.Digest != "" || resolved.Pinned {
				t.Errorf("%s: %+v, %v", tc.reason, resolved, err)
			}
			if method.Load() != http.MethodHead {
				t.Errorf("asked with %v", method.Load())
			}
		})
	}
	o := Options{URL: url + "/etag"}
	fetched, _, err := pull(t, o, fetch.Resolved{Validator: "older"})
	if err != nil || !(fetch.Resolved{Validator: etag}).Same(fetched) {
		t.Errorf("the validator is that of the bytes that came: %+v, %v", fetched, err)
	}
}

func TestFailuresAreDistinct(t *testing.T) {
	for url, text := range map[string]string{
		"http://satchel.invalid/x?sig=CANARY-query": "archive http://satchel.invalid/x: ",
		"http://127.0.0.1:1/x":                      "connection refused",
	} {
		_, _, err := pull(t, Options{URL: url}, fetch.Resolved{})
		if fetch.ReasonOf(err) != fetch.Unreachable || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestM20URLs(t *testing.T) {
	cases := map[string]struct{ reason, url string }{
		"File":      {"reads this machine", "file:///etc/passwd"},
		"Relative":  {"no server", "/bundle.tgz"},
		"Empty":     {"nothing", ""},
		"NoHost":    {"no server", "https:///x"},
		"User":      {"would be shown", "https://user:CANARY-password@example.org/x"},
		"Fragment":  {"means nothing here", "https://example.org/x#y"},
		"Newline":   {"forges requests", "https://example.org/x%0a"},
		"BadEscape": {"malformed", "https://example.org/%zz"},
		"Long":      {"too long", "https://example.org/" + strings.Repeat("x", 3000)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{URL: tc.url, Client: client(t)})
			if fetch.ReasonOf(err) != fetch.Refused || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
