// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func newLoader(t *testing.T, dir, server string, edit ...func(*artifact.LoaderOptions)) *artifact.Loader {
	t.Helper()
	o := artifact.LoaderOptions{
		Client: &http.Client{}, ServerURLs: []string{server + "/"}, CacheDir: dir, Limits: fetch.DefaultLimits(),
	}
	for _, e := range edit {
		e(&o)
	}
	loader, err := artifact.NewLoader(o)
	if err != nil {
		t.Fatal(err)
	}
	return loader
}

// archives lists the archives below a folder by base name.
func archives(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*/*/*/*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(found))
	for _, file := range found {
		names = append(names, filepath.Base(file))
	}
	return names
}

// served is a store behind a server that counts requests.
type served struct {
	store    *artifact.Store
	server   *httptest.Server
	requests atomic.Int32
}

func newServed(t *testing.T, wrap ...func(http.Handler) http.Handler) *served {
	t.Helper()
	s := &served{store: openStore(t, t.TempDir())}
	handler := s.store.Handler()
	for _, w := range wrap {
		handler = w(handler)
	}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	return s
}

func (s *served) put(t *testing.T, tree fs.FS) meta.Artifact {
	t.Helper()
	a := put(t, s.store, tree)
	a.URL = s.server.URL + "/" + a.Path
	return a
}

func TestLoad(t *testing.T) {
	s := newServed(t)
	want := map[string]string{"manifests/a.yaml": "a: 1\n", "metadata/b": "", "c": "3"}
	a := s.put(t, files(want))
	dir := t.TempDir()
	loader := newLoader(t, dir, s.server.URL)
	content, err := loader.Load(t.Context(), owner, a)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name := range want {
		data, err := fs.ReadFile(content.FS(), name)
		if err != nil {
			t.Error(err)
		}
		got[name] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(content.Close(), content.Close()); err != nil {
		t.Error(err)
	}
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestF9LoadFromTheCache(t *testing.T) {
	s := newServed(t)
	a := s.put(t, noise(5, 10_000))
	dir := t.TempDir()
	load := func() error {
		content, err := newLoader(t, dir, s.server.URL).Load(t.Context(), owner, a)
		if err != nil {
			return err
		}
		return content.Close()
	}
	if err := errors.Join(load(), load()); err != nil || s.requests.Load() != 1 {
		t.Fatalf("%d requests were made: %v", s.requests.Load(), err)
	}
	cached, err := filepath.Glob(filepath.Join(dir, "*/*/*/*.tar.gz"))
	if err != nil || len(cached) != 1 {
		t.Fatalf("cached is %v: %v", cached, err)
	}
	for name, tc := range damages() {
		if strings.HasPrefix(name, "digest") || strings.HasPrefix(name, "storage") || strings.HasPrefix(name, "folder of") {
			continue // there is no such thing in a cache
		}
		before := s.requests.Load()
		if err := tc.do(cached[0]); err != nil {
			t.Fatal(err)
		}
		if err := load(); err != nil || s.requests.Load() != before+1 {
			t.Errorf("%s: %d requests were made: %v", name, s.requests.Load()-before, err)
		}
	}
	s.server.Close()
	if err := load(); err != nil {
		t.Errorf("with the server down: %v", err)
	}
	if err := flipBit(cached[0]); err != nil {
		t.Fatal(err)
	}
	wantReason(t, load(), fetch.Unreachable)
}

func TestT11OnlyTheOwnersPathOnAConfiguredServer(t *testing.T) {
	s := newServed(t)
	canary := newServed(t)
	a := s.put(t, files(map[string]string{"a": "1"}))
	base := s.server.URL
	identity := filepath.Base(a.Path)
	cases := map[string]struct {
		reason string
		url    string
	}{
		"other server":       {"a patched status must not make the controller ask elsewhere", canary.server.URL + "/" + a.Path},
		"other port":         {"the port is part of the server", strings.Replace(base, "127.0.0.1:", "127.0.0.1:1", 1) + "/" + a.Path},
		"https":              {"the scheme is part of the server", strings.Replace(base, "http:", "https:", 1) + "/" + a.Path},
		"user":               {"credentials in front of another host", strings.Replace(canary.server.URL, "http://", "http://"+base[7:]+"@", 1) + "/" + a.Path},
		"suffix":             {"the server's name at the beginning of another", base + ".evil.test/" + a.Path},
		"other namespace":    {"another tenant's artifact", base + "/bundlesource/other/app/" + identity},
		"other name":         {"another object's artifact", base + "/bundlesource/platform/other/" + identity},
		"other kind":         {"another kind's artifact", base + "/gitrepository/platform/app/" + identity},
		"dots":               {"a path that a server may clean", base + "/bundlesource/platform/app/../../other/app/" + identity},
		"escaped dots":       {"the same in another spelling", base + "/bundlesource/platform/app/%2e%2e/%2e%2e/other/app/" + identity},
		"escaped slash":      {"one segment for this side, two for the other", base + "/bundlesource/platform%2fapp/" + identity},
		"double slash":       {"only one spelling is right", base + "//" + a.Path},
		"query":              {"a query could be a token", base + "/" + a.Path + "?x=1"},
		"fragment":           {"", base + "/" + a.Path + "#x"},
		"other digest":       {"the file name is the identity of the revision", base + "/bundlesource/platform/app/" + digestOf(nil)[7:] + ".tar.gz"},
		"upper case":         {"only one spelling is right", base + "/bundlesource/platform/app/" + strings.ToUpper(identity)},
		"empty":              {"", ""},
		"relative":           {"", "/" + a.Path},
		"file":               {"no file of this machine", "file:///" + a.Path},
		"newline":            {"", base + "/" + a.Path + "\n"},
		"backslash":          {"", base + "\\" + a.Path},
		"space at the front": {"", " " + base + "/" + a.Path},
	}
	loader := newLoader(t, t.TempDir(), base)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			forged := a
			forged.URL = tc.url
			_, err := loader.Load(t.Context(), owner, forged)
			wantReason(t, err, fetch.Refused)
		})
	}
	if n := s.requests.Load() + canary.requests.Load(); n != 0 {
		t.Errorf("%d requests were made", n)
	}
	if _, err := loader.Load(t.Context(), owner, a); err != nil {
		t.Errorf("the right one: %v", err)
	}
}

// TestT11CacheIsPerOwner: whoever forges a status with a digest known from elsewhere finds nothing.
func TestT11CacheIsPerOwner(t *testing.T) {
	s := newServed(t)
	a := s.put(t, files(map[string]string{"secret": "CANARY-1"}))
	loader := newLoader(t, t.TempDir(), s.server.URL)
	if _, err := loader.Load(t.Context(), owner, a); err != nil {
		t.Fatal(err)
	}
	other := artifact.Owner{Kind: owner.Kind, Namespace: "other", Name: owner.Name}
	forged := a
	forged.URL = s.server.URL + "/bundlesource/other/app/" + filepath.Base(a.Path)
	_, err := loader.Load(t.Context(), other, forged)
	wantReason(t, err, fetch.NotFound)
}

func TestLoadErrors(t *testing.T) {
	answer := func(status int, body string, header ...string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for i := 0; i < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			})
		}
	}
	cases := map[string]struct {
		reason string
		wrap   func(http.Handler) http.Handler
		edit   func(*meta.Artifact)
		limits func(*fetch.Limits)
		want   fetch.Reason
	}{
		"gone":          {reason: "the source was deleted", wrap: answer(404, ""), want: fetch.NotFound},
		"forbidden":     {reason: "", wrap: answer(403, ""), want: fetch.Unauthorized},
		"rate limit":    {reason: "", wrap: answer(429, ""), want: fetch.RateLimited},
		"unavailable":   {reason: "the server must not serve what it has", wrap: answer(503, ""), want: fetch.Unreachable},
		"redirect":      {reason: "a redirect could lead anywhere", wrap: answer(302, "", "Location", "http://127.0.0.1:1/"), want: fetch.Refused},
		"no content":    {reason: "only 200 carries an archive", wrap: answer(204, ""), want: fetch.Unreachable},
		"other bytes":   {reason: "", wrap: flipped, want: fetch.DigestMismatch},
		"short":         {reason: "the connection ends before the length that was said", wrap: cut, want: fetch.Unreachable},
		"other size":    {reason: "", edit: func(a *meta.Artifact) { *a.Size++ }, want: fetch.DigestMismatch},
		"no length":     {reason: "", wrap: chunked, want: fetch.Refused},
		"wrong digest":  {reason: "", edit: func(a *meta.Artifact) { a.Digest = digestOf([]byte("x")) }, want: fetch.DigestMismatch},
		"no digest":     {reason: "", edit: func(a *meta.Artifact) { a.Digest = "" }, want: fetch.Refused},
		"weak digest":   {reason: "", edit: func(a *meta.Artifact) { a.Digest = "sha1:" + strings.Repeat("0", 40) }, want: fetch.Refused},
		"too large":     {reason: "it is refused before it is downloaded", limits: func(l *fetch.Limits) { l.ExtractedBytes, l.Entries = 1000, 1 }, want: fetch.LimitExceeded},
		"too many":      {reason: "", limits: func(l *fetch.Limits) { l.Entries = 1 }, want: fetch.LimitExceeded},
		"unpacked size": {reason: "", limits: func(l *fetch.Limits) { l.ExtractedBytes = 9000 }, want: fetch.LimitExceeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wrap := tc.wrap
			if wrap == nil {
				wrap = func(h http.Handler) http.Handler { return h }
			}
			s := newServed(t, wrap)
			tree := noise(6, 10_000)
			tree["second"] = tree["noise"]
			a := s.put(t, tree)
			if tc.edit != nil {
				tc.edit(&a)
			}
			dir := t.TempDir()
			_, err := newLoader(t, dir, s.server.URL, func(o *artifact.LoaderOptions) {
				if tc.limits != nil {
					tc.limits(&o.Limits)
				}
			}).Load(t.Context(), owner, a)
			wantReason(t, err, tc.want)
			if left := temporary(t, dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			// Only what is too much once unpacked has been downloaded.
			if cached := archives(t, dir); len(cached) > 0 && name != "too many" && name != "unpacked size" {
				t.Errorf("cached in spite of it: %v", cached)
			}
		})
	}
}

// flipped serves what the handler serves with one bit changed.
func flipped(h http.Handler) http.Handler {
	return rewritten(h, func(w http.ResponseWriter, body []byte) {
		body[len(body)/2] ^= 1
		_, _ = w.Write(body)
	})
}

// cut ends the connection in the middle.
func cut(h http.Handler) http.Handler {
	return rewritten(h, func(w http.ResponseWriter, body []byte) {
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	})
}

// chunked does not say a length.
func chunked(h http.Handler) http.Handler {
	return rewritten(h, func(w http.ResponseWriter, body []byte) {
		w.Header().Del("Content-Length")
		w.(http.Flusher).Flush() //nolint:errcheck // a test
		_, _ = w.Write(body)
	})
}

func rewritten(h http.Handler, send func(http.ResponseWriter, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		send(w, answer.Body.Bytes())
	})
}

// TestLoadIdentity serves an archive whose file is as advertised and whose content is not the revision's.
func TestLoadIdentity(t *testing.T) {
	s := newServed(t)
	right, wrong := s.put(t, files(map[string]string{"a": "1"})), s.put(t, files(map[string]string{"a": "2"}))
	forged := wrong
	forged.Digest, forged.Size = right.Digest, right.Size
	swapped := newServed(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = "/" + right.Path
			s.store.Handler().ServeHTTP(w, r)
		})
	})
	forged.URL = swapped.server.URL + "/" + wrong.Path
	dir := t.TempDir()
	_, err := newLoader(t, dir, swapped.server.URL).Load(t.Context(), owner, forged)
	wantReason(t, err, fetch.DigestMismatch)
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLoadTimeoutAndCancel(t *testing.T) {
	s := newServed(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	})
	a := s.put(t, files(map[string]string{"a": "1"}))
	loader := newLoader(t, t.TempDir(), s.server.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := loader.Load(ctx, owner, a)
	wantReason(t, err, fetch.Timeout)
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := loader.Load(ctx, owner, a); !errors.Is(err, context.Canceled) || fetch.ReasonOf(err) != "" {
		t.Errorf("a cancelled context gives %v", err)
	}
}

func TestLoadTogetherDownloadsOnce(t *testing.T) {
	s := newServed(t)
	a := s.put(t, noise(7, 100_000))
	loader := newLoader(t, t.TempDir(), s.server.URL)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			content, err := loader.Load(t.Context(), owner, a)
			if err != nil {
				t.Error(err)
				return
			}
			if err := content.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := s.requests.Load(); n != 1 {
		t.Errorf("%d requests were made", n)
	}
}

// TestCacheEviction keeps three artifacts of 10 kB in a cache of 35 kB.
func TestCacheEviction(t *testing.T) {
	s := newServed(t)
	dir := t.TempDir()
	now := &clock{now: time.Unix(1e9, 0)}
	open := func() *artifact.Loader {
		return newLoader(t, dir, s.server.URL, func(o *artifact.LoaderOptions) { o.CacheBytes, o.Now = 35_000, now.Now })
	}
	loader := open()
	var all []meta.Artifact
	for seed := range uint64(5) {
		all = append(all, s.put(t, noise(20+seed, 10_000)))
	}
	load := func(i int) error {
		now.add(time.Second)
		content, err := loader.Load(t.Context(), owner, all[i])
		if err != nil {
			return err
		}
		return content.Close()
	}
	expect := func(step string, indices ...int) {
		t.Helper()
		var want []string
		for _, i := range indices {
			want = append(want, all[i].Digest[7:]+".tar.gz")
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, archives(t, dir)); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(load(0), load(1), load(2), load(0), load(3))
	expect("1 was used least recently", 0, 2, 3)
	must(loader.Keep(owner, []string{all[2].Digest, all[2].Digest}), load(4))
	expect("2 is pinned, 0 goes", 2, 3, 4)
	loader = open()
	must(load(0))
	expect("pins and order hold over a restart", 2, 4, 0)
	must(loader.Keep(owner, []string{all[0].Digest, all[2].Digest, all[4].Digest}))
	var failure *artifact.StorageError
	if err := load(1); !errors.As(err, &failure) || !failure.Full() || !strings.Contains(err.Error(), "raise the size") {
		t.Errorf("a cache full of pinned artifacts gives %v", err)
	}
	expect("nothing was evicted", 0, 2, 4)
	must(loader.Keep(owner, nil), load(1))
	expect("2 was used least recently", 0, 1, 4)
}

func TestF12LoadOnAFullDisk(t *testing.T) {
	s := newServed(t)
	a := s.put(t, noise(8, 100_000))
	dir := t.TempDir()
	armed := atomic.Bool{}
	loader := newLoader(t, dir, s.server.URL, func(o *artifact.LoaderOptions) {
		o.FS = hookFS{before: func(op string) error {
			if armed.Load() && op == "write" {
				return syscall.ENOSPC
			}
			return nil
		}}
	})
	armed.Store(true)
	_, err := loader.Load(t.Context(), owner, a)
	var failure *artifact.StorageError
	if !errors.As(err, &failure) || !failure.Full() || fetch.ReasonOf(err) != "" {
		t.Errorf("a full disk is reported as %v", err)
	}
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	armed.Store(false)
	if _, err := loader.Load(t.Context(), owner, a); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestNewLoaderRefusesBadServers(t *testing.T) {
	for _, server := range []string{"", "host:80", "ftp://host", "http://", "http://u:CANARY-2@host", "http://host?x", "http://host#x"} {
		_, err := artifact.NewLoader(artifact.LoaderOptions{
			Client: &http.Client{}, ServerURLs: []string{server}, CacheDir: t.TempDir(), Limits: fetch.DefaultLimits(),
		})
		if err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q gives %v", server, err)
		}
	}
}
