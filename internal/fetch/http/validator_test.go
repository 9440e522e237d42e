// SPDX-License-Identifier: Apache-2.0

package http

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// F42: two publications within one second have the same modification date. The second one is seen, since a date that is
// as young as the answer identifies nothing.
func TestF42SecondPublicationWithinOneSecond(t *testing.T) {
	published := time.Now().Truncate(time.Second)
	content := packed(t, "a", "1")
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", published, strings.NewReader(string(content)))
	})
	o := Options{URL: url + "/a.tar"}
	first, _, err := pull(t, o, fetch.Resolved{})
	if err != nil {
		t.Fatal(err)
	}
	content = packed(t, "a", "2")
	if resolved := resolve(t, o); resolved.Same(first) {
		t.Fatalf("%+v is taken for the same as %+v", resolved, first)
	}
	second, files, err := pull(t, o, fetch.Resolved{})
	if err != nil || files["a"] != "2" || second.Digest == first.Digest {
		t.Errorf("the second publication: %+v, %v, %v", second, files, err)
	}
}

// F42: which validators are recorded with what was downloaded, and are compared from then on. What is not recorded is
// downloaded again at the next interval.
func TestF42Validators(t *testing.T) {
	const long, date = "Thu, 01 Jan 2026 00:00:00 GMT", "Date"
	at := func(second string) string { return "Thu, 01 Jan 2026 00:0" + second + " GMT" }
	cases := map[string]struct {
		reason   string
		header   []string
		recorded string
	}{
		"strong tag":           {"is trusted at any age", []string{"ETag", `"1"`, "Last-Modified", long, date, long}, `"1"`},
		"strong tag alone":     {"needs no date", []string{"ETag", `"1"`}, `"1"`},
		"same second":          {"another publication may follow in it", []string{"Last-Modified", long, date, long}, ""},
		"a second later":       {"the clocks may differ", []string{"Last-Modified", long, date, at("0:01")}, ""},
		"almost a minute":      {"just not", []string{"Last-Modified", long, date, at("0:59")}, ""},
		"a minute later":       {"nothing can follow", []string{"Last-Modified", long, date, at("1:00")}, long},
		"in the future":        {"the clocks differ", []string{"Last-Modified", at("5:00"), date, long}, ""},
		"answer without date":  {"its age is not known", []string{"Last-Modified", long, date, ""}, ""},
		"malformed date":       {"its age is not known", []string{"Last-Modified", "yesterday", date, long}, ""},
		"weak tag alone":       {"says nothing about bytes", []string{"ETag", `W/"1"`, date, long}, ""},
		"weak tag, young date": {"is made of the date", []string{"ETag", `W/"1"`, "Last-Modified", long, date, long}, ""},
		"weak tag, old date":   {"is more exact than the date", []string{"ETag", `W/"1"`, "Last-Modified", long, date, at("1:00")}, `W/"1" ` + long},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for i := 0; i < len(tc.header); i += 2 {
					w.Header()[tc.header[i]] = []string{tc.header[i+1]}
					if tc.header[i+1] == "" {
						w.Header()[tc.header[i]] = nil
					}
				}
				if r.Method == http.MethodGet {
					_, _ = w.Write(packed(t, "a", "1"))
				}
			})
			o := Options{URL: url + "/a.tar"}
			fetched, _, err := pull(t, o, fetch.Resolved{})
			if err != nil || fetched.Validator != tc.recorded {
				t.Errorf("%s: recorded %q (%v)", tc.reason, fetched.Validator, err)
			}
			if got, want := resolve(t, o).Same(fetched), tc.recorded != ""; got != want {
				t.Errorf("%s: the next look finds the same content: %v", tc.reason, got)
			}
		})
	}
}

// resolve asks the server what is there now.
func resolve(t *testing.T, o Options) fetch.Resolved {
	t.Helper()
	o.Client, o.Limits = client(t), fetch.DefaultLimits()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}
