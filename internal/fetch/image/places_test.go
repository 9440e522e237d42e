// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/fetch"
	registries "github.com/satchel-dev/satchel/tests/upstream"
)

// watched is a registry of its own behind a server that counts and changes what it answers.
type watched struct {
	*registries.Registry
	host string

	mutex sync.Mutex
	asked []string
	fail  func(http.ResponseWriter, *http.Request) bool // answers instead of the registry
}

func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{Registry: registries.NewRegistry(t.Context())}
	t.Cleanup(w.Close)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		w.mutex.Lock()
		w.asked = append(w.asked, request.Method+" "+request.URL.Path)
		fail := w.fail
		w.mutex.Unlock()
		if fail == nil || !fail(out, request) {
			w.ServeHTTP(out, request)
		}
	}))
	t.Cleanup(server.Close)
	w.host = strings.TrimPrefix(server.URL, "http://")
	return w
}

func (w *watched) requests() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.asked
}

// away fails every request.
func away(out http.ResponseWriter, _ *http.Request) bool {
	out.WriteHeader(http.StatusServiceUnavailable)
	return true
}

// withoutLayers cuts each layer short.
func withoutLayers(out http.ResponseWriter, request *http.Request) bool {
	if !strings.Contains(request.URL.Path, "/blobs/") {
		return false
	}
	out.Header().Set("Content-Length", "100000")
	_, _ = out.Write([]byte("cut"))
	return true
}

func TestC58C59Mirrors(t *testing.T) {
	content := fstest.MapFS{"a.yaml": &fstest.MapFile{Data: []byte("one")}}
	type trio struct{ origin, first, second *watched }
	tests := map[string]struct {
		reason  string
		by      string // "tag", or the digest
		prepare func(trio)
		tags    bool
		only    bool
		via     string // "first", "second", or the source
		want    fetch.Reason
		says    string
		origin  bool // it was contacted
	}{
		"digest":          {reason: "the first mirror has it", via: "first"},
		"second":          {reason: "mirrors are tried in order", prepare: func(r trio) { r.first.fail = away }, via: "second"},
		"fallback":        {reason: "no mirror answers", prepare: func(r trio) { r.first.fail, r.second.fail = away, away }, origin: true},
		"damaged":         {reason: "a mirror that sends half a layer is passed over", prepare: func(r trio) { r.first.fail = withoutLayers }, via: "second"},
		"never":           {reason: "the source is not contacted", only: true, via: "first"},
		"never, away":     {reason: "rather nothing than the source", only: true, prepare: func(r trio) { r.first.fail, r.second.fail = away, away }, want: fetch.Unreachable, says: "mirror"},
		"tag":             {reason: "the source says what a tag is", by: "tag", via: "first", origin: true},
		"tag at a mirror": {reason: "if that is permitted", by: "tag", tags: true, via: "first"},
		"tag, never":      {reason: "no registry may be asked", by: "tag", only: true, want: fetch.Refused, says: "name a digest"},
		"tag, never, at a mirror": {
			reason: "the mirrors decide", by: "tag", only: true, tags: true, via: "first",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := trio{watch(t), watch(t), watch(t)}
			digest, err := r.origin.Push(t.Context(), "org/app:v1", content)
			for _, mirror := range []*watched{r.first, r.second} {
				if err == nil {
					_, err = mirror.Push(t.Context(), "copy/app:v1", content)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if tc.prepare != nil {
				tc.prepare(r)
			}
			o := options(r.origin.host + "/org/app@" + digest)
			if tc.by == "tag" {
				o = options(r.origin.host + "/org/app:v1")
			}
			o.MirrorsOnly = tc.only
			for _, mirror := range []*watched{r.first, r.second} {
				o.Mirrors = append(o.Mirrors, Mirror{Repository: mirror.host + "/copy/app", Tags: tc.tags, Insecure: true, Client: o.Client})
			}
			resolved, files, err := pull(t, o)
			switch {
			case tc.want != "":
				if fetch.ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s: %v", tc.reason, err)
				}
			case err != nil:
				t.Fatalf("%s: %v", tc.reason, err)
			default:
				want := map[string]string{"first": r.first.host + "/copy/app", "second": r.second.host + "/copy/app"}[tc.via]
				if resolved.Via != want || resolved.Digest != digest || len(files) != 1 {
					t.Errorf("%s: %+v, want via %q, files %v", tc.reason, resolved, want, files)
				}
			}
			if asked := r.origin.requests(); (len(asked) > 0) != tc.origin {
				t.Errorf("%s: the source was asked %q", tc.reason, asked)
			}
		})
	}
}

// Several verifiers: each one has to accept the image; a signature may lie at any place, and counts for the original name.
func TestC60AllVerifiers(t *testing.T) {
	origin, mirror := watch(t), watch(t)
	content := fstest.MapFS{"a.yaml": &fstest.MapFile{Data: []byte("one")}}
	digest, err := origin.Push(t.Context(), "org/app:v1", content)
	if err == nil {
		_, err = mirror.Push(t.Context(), "copy/app:v1", content)
	}
	if err == nil {
		_, err = origin.Push(t.Context(), "org/app:signature", content)
	}
	if err != nil {
		t.Fatal(err)
	}
	// signed accepts what has a signature beside it.
	signed := verifierFunc(func(ctx context.Context, s Subject) (string, error) {
		if s.Repository != origin.host+"/org/app" {
			t.Errorf("the subject is %s", s.Repository)
		}
		_, _, err := s.Registry.Manifest(ctx, "signature")
		if fetch.ReasonOf(err) == fetch.NotFound {
			return "", fetch.Errorf(fetch.Unverified, "unsigned")
		}
		return "alice", err
	})
	bob := verifierFunc(func(context.Context, Subject) (string, error) { return "bob", nil })
	refusing := verifierFunc(func(context.Context, Subject) (string, error) {
		return "", fetch.Errorf(fetch.Unverified, "not by me")
	})
	o := options(origin.host + "/org/app@" + digest)
	o.Mirrors = []Mirror{{Repository: mirror.host + "/copy/app", Insecure: true, Client: o.Client}}
	o.Verify = []Verifier{signed, bob}
	resolved, _, err := pull(t, o)
	if err != nil || resolved.VerifiedBy != "alice and bob" || resolved.Via != mirror.host+"/copy/app" {
		t.Errorf("signed at the source: %+v, %v", resolved, err)
	}
	for name, verifiers := range map[string][]Verifier{"first": {refusing, bob}, "last": {bob, refusing}} {
		o.Verify = verifiers
		if _, files, err := pull(t, o); fetch.ReasonOf(err) != fetch.Unverified || len(files) > 0 {
			t.Errorf("%s does not accept it: %v, %v", name, files, err)
		}
	}
	o.Verify = []Verifier{signed}
	o.MirrorsOnly = true
	if _, _, err := pull(t, o); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("the signature is at the source only, which is not contacted: %v", err)
	}
	o.MirrorsOnly = false
	origin.mutex.Lock()
	origin.fail = away
	origin.mutex.Unlock()
	if _, _, err := pull(t, o); err == nil || fetch.ReasonOf(err) == fetch.Unverified {
		t.Errorf("the signature may be at the source, which is away: %v", err)
	}
}

// What was kept of several signatures is judged by each verifier.
func TestC60JudgeAll(t *testing.T) {
	accepts := func(by string) Verifier {
		return verifierFunc(func(_ context.Context, s Subject) (string, error) {
			if s.Registry.(replay).Reference == by {
				return by, nil
			}
			return "", errors.New("another signature")
		})
	}
	signature := joinSignatures([]string{`{"reference":"alice"}`, `{"reference":"bob"}`})
	digest := "sha256:" + strings.Repeat("e", 64)
	if by, err := VerifyKept(t.Context(), []Verifier{accepts("bob"), accepts("alice")}, digest, signature); err != nil || by != "bob and alice" {
		t.Errorf("%q, %v", by, err)
	}
	if _, err := VerifyKept(t.Context(), []Verifier{accepts("alice"), accepts("carol")}, digest, signature); err == nil {
		t.Error("a signature of carol was not kept")
	}
	if _, err := VerifyKept(t.Context(), nil, digest, signature); err == nil {
		t.Error("without a verifier it is accepted")
	}
	if got := joinSignatures([]string{`{}`, ""}); got != "" {
		t.Errorf("one of two was not kept: %q", got)
	}
}

// M39: the name by which policies decide.
func TestM39FullName(t *testing.T) {
	sum := "@sha256:" + strings.Repeat("e", 64)
	tests := map[string]struct {
		ref      string
		insecure bool
		want     string
	}{
		"short":            {"nginx", false, "docker.io/library/nginx"},
		"Docker Hub":       {"docker.io/org/app:v1", false, "docker.io/org/app"},
		"its registry":     {"registry-1.docker.io/nginx", false, "docker.io/library/nginx"},
		"index":            {"index.docker.io/library/nginx" + sum, false, "docker.io/library/nginx"},
		"upper case":       {"QUAY.io/org/app", false, "quay.io/org/app"},
		"dot":              {"quay.io./org/app", false, "quay.io/org/app"},
		"dot and port":     {"quay.io.:5000/org/app", false, "quay.io:5000/org/app"},
		"default port":     {"quay.io:443/org/app", false, "quay.io/org/app"},
		"all of them":      {"Quay.IO.:443/org/app", false, "quay.io/org/app"},
		"TLS at 80":        {"quay.io:80/org/app", false, "quay.io/org/app"},
		"plain":            {"quay.io:80/org/app", true, "quay.io/org/app"},
		"plain, no port":   {"quay.io/org/app", true, "quay.io/org/app"},
		"plain at 443":     {"quay.io:443/org/app", true, "quay.io/org/app"},
		"zeros":            {"quay.io:0443/org/app", false, "quay.io/org/app"},
		"plain, zeros":     {"quay.io:00080/org/app", true, "quay.io/org/app"},
		"other port":       {"quay.io:08443/org/app", false, "quay.io:8443/org/app"},
		"IPv6":             {"[0:0:0:0:0:0:0:1]:8443/app", false, "[::1]:8443/app"},
		"IPv6, default":    {"[0::1]:0443/app", false, "[::1]/app"},
		"IPv4 in IPv6":     {"[::ffff:7f00:1]:8443/app", false, "127.0.0.1:8443/app"},
		"IPv4 with a dot":  {"127.0.0.1.:8443/app", false, "127.0.0.1:8443/app"},
		"hub, zeros":       {"docker.io:0443/library/nginx", false, "docker.io/library/nginx"},
		"hub, short":       {"registry.hub.docker.com:443/nginx", false, "docker.io/library/nginx"},
		"hub, plain":       {"Index.Docker.io.:80/nginx", true, "docker.io/library/nginx"},
		"hub, other port":  {"docker.io:8443/org/nginx", false, "docker.io:8443/org/nginx"},
		"label":            {"registry:443/app", false, "registry/app"},
		"without TLS port": {"127.0.0.1:5000/app", true, "127.0.0.1:5000/app"},
	}
	for name, tc := range tests {
		if got, err := FullName(tc.ref, tc.insecure); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tc.want)
		}
	}
	for _, malformed := range []string{"https://x", ".:443/a", ".:80/a", "..:443/a", "quay..io/a", "quay.io:0/a", "quay.io:65979/a", "127.1:8443/a",
		"0x7f.1:8443/a", "127.0.0.01:8443/a", "2130706433:8443/a", "0.0.0.0:8443/a", "[::]:8443/a", "[::ffff:0:0]:8443/a", "[::1%25lo]:8443/a"} {
		for _, insecure := range []bool{false, true} {
			if got, err := FullName(malformed, insecure); fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s has the full name %q, %v", malformed, got, err)
			}
			if _, err := New(Options{Ref: malformed, Insecure: insecure, Client: client()}); fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s is fetched: %v", malformed, err)
			}
		}
	}
}
