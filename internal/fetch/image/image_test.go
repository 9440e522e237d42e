// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestImageOfSeveralLayers(t *testing.T) {
	for name, u := range servers(t) {
		t.Run(name, func(t *testing.T) {
			img := imageOf(t,
				layer(t, "manifests/a", "1", "manifests/b", "1", "metadata/c", "1"),
				layer(t, "manifests/.wh.b", "", "manifests/a", "2"),
				layer(t, "metadata/.wh..wh..opq", "", "metadata/d", "3"),
			)
			ref := u.host + "/org/bundle:v1"
			push(t, ref, img)
			u.alter(nil)
			resolved, files, err := pull(t, options(ref))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fetch.Resolved{Reference: "v1", Digest: digestOf(t, img)}, resolved); diff != "" {
				t.Error(diff)
			}
			want := map[string]string{"manifests/a": "2", "metadata/d": "3"}
			if diff := cmp.Diff(want, files); diff != "" {
				t.Error(diff)
			}
			got := u.seen()
			if len(got) != 5 || got[0] != "HEAD /v2/org/bundle/manifests/v1" ||
				got[1] != "GET /v2/org/bundle/manifests/"+resolved.Digest {
				t.Errorf("not one HEAD, one manifest and three blobs: %q", got)
			}
		})
	}
}

func TestF17PinnedAndMovedTags(t *testing.T) {
	u := small(t)
	first, second := imageOf(t, layer(t, "a", "1")), imageOf(t, layer(t, "a", "2"))
	ref := u.host + "/org/bundle:v1"
	push(t, ref, first)
	moving, err := New(options(ref))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := moving.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	push(t, ref, second)
	if _, files, err := fetchInto(t, moving, resolved, fetch.DefaultLimits()); err != nil || files["a"] != "1" {
		t.Errorf("the resolved image is fetched although the tag moved: %v %v", files, err)
	}
	u.alter(nil)
	for _, form := range []string{"@", ":v1@"} {
		pinned, err := New(options(u.host + "/org/bundle" + form + digestOf(t, first)))
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := pinned.Resolve(context.Background())
		if want := (fetch.Resolved{Digest: digestOf(t, first), Pinned: true}); err != nil || resolved != want {
			t.Errorf("%+v, %v", resolved, err)
		}
		if got := u.seen(); len(got) > 0 {
			t.Errorf("a digest needs no request: %v", got)
		}
	}
}

func TestResolveWithoutHead(t *testing.T) {
	img := imageOf(t, layer(t, "a", "1"))
	cases := map[string]struct {
		reason string
		head   func(w http.ResponseWriter)
	}{
		"NotAllowed":  {"some proxies do not pass HEAD", func(w http.ResponseWriter) { w.WriteHeader(405) }},
		"NotFound":    {"some registries say so", func(w http.ResponseWriter) { w.WriteHeader(404) }},
		"Unsupported": {"some say so", func(w http.ResponseWriter) { w.WriteHeader(501) }},
		"NoDigest":    {"the header is optional", func(http.ResponseWriter) {}},
		"BadDigest":   {"and sometimes nonsense", func(w http.ResponseWriter) { w.Header().Set("Docker-Content-Digest", "md5:1") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := small(t)
			push(t, u.host+"/b:v1", img)
			u.alter(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodHead {
					tc.head(w)
				}
				return r.Method == http.MethodHead
			})
			if resolved, _, err := pull(t, options(u.host+"/b:v1")); err != nil || resolved.Digest != digestOf(t, img) {
				t.Errorf("%s: %v, %v", tc.reason, resolved, err)
			}
		})
	}
}

func TestFailuresAreDistinct(t *testing.T) {
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1")))
	answer := func(code int, header, value, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if header != "" {
				w.Header().Set(header, value)
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	code := func(code string) string {
		data, err := json.Marshal(map[string]any{"errors": []any{map[string]string{"code": code, "message": "CANARY"}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	cases := map[string]struct {
		ref    string
		change func(http.ResponseWriter, *http.Request) bool
		want   fetch.Reason
		text   string
	}{
		"NoTag":        {u.host + "/b:v2", nil, fetch.NotFound, "image " + u.host + "/b:v2: not found (404 MANIFEST_UNKNOWN): check the tag, or that the repository is public"},
		"NoRepository": {u.host + "/c:v1", nil, fetch.NotFound, "not found (404 NAME_UNKNOWN): check the tag"},
		"NoBlob":       {u.host + "/b:v1", onlyBlobs(answer(404, "", "", code("BLOB_UNKNOWN"))), fetch.NotFound, "layer 1 of 1: not found (404 BLOB_UNKNOWN)"},
		"Unauthorized": {u.host + "/b:v1", answer(401, "", "", code("UNAUTHORIZED")), fetch.Unauthorized, "access denied (401 UNAUTHORIZED): check the name, or that the repository is public"},
		"Basic":        {u.host + "/b:v1", answer(401, "WWW-Authenticate", `Basic realm="x"`, code("UNAUTHORIZED")), fetch.Unauthorized, "access denied (401"},
		"Forbidden":    {u.host + "/b:v1", answer(403, "", "", code("DENIED")), fetch.Unauthorized, "access denied (403 DENIED)"},
		"OddCode":      {u.host + "/b:v1", answer(403, "", "", code("<script>\n")), fetch.Unauthorized, "access denied (403 Forbidden)"},
		"RateLimited":  {u.host + "/b:v1", answer(429, "Retry-After", "30", code("TOOMANYREQUESTS")), fetch.RateLimited, "fewer requests (429"},
		"Broken":       {u.host + "/b:v1", answer(500, "", "", "oops"), fetch.Unreachable, "the server failed (500 Internal Server Error)"},
		"Closed":       {"127.0.0.1:1" + "/b:v1", nil, fetch.Unreachable, "connection refused"},
		"LoginPage":    {u.host + "/b:v1", answer(200, "Content-Type", "text/html", "<html>"), fetch.DigestMismatch, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u.alter(tc.change)
			_, _, err := pull(t, options(tc.ref))
			if fetch.ReasonOf(err) != tc.want && !(name == "LoginPage" && fetch.ReasonOf(err) == fetch.InvalidContent) {
				t.Fatalf("got %v: %v", fetch.ReasonOf(err), err)
			}
			if !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func onlyBlobs(change func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/blobs/") && change(w, r)
	}
}
