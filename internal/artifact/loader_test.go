// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/fetch"
)

func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func newLoader(t *testing.T, dir, server string, edit ...func(*loader.Options)) *loader.Loader {
	t.Helper()
	o := loader.Options{
		Client: &http.Client{}, ServerURLs: []string{server + "/"}, CacheDir: dir, Limits: fetch.DefaultLimits(),
	}
	for _, e := range edit {
		e(&o)
	}
	loader, err := loader.New(o)
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
	store    *storage.Store
	server   *httptest.Server
	requests atomic.Int32
}

func newServed(t *testing.T, wrap ...func(http.Handler) http.Handler) *served {
	t.Helper()
	s := &served{store: openStore(t, t.TempDir())}
	var handler http.Handler = server.NewHandler(s.store, server.Options{})
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

// TestT11CacheIsPerOwner: a forged status with a digest of another owner finds nothing in the cache.
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

// TestLoadIdentity serves an archive with the advertised file, but not with the content of the revision.
func TestLoadIdentity(t *testing.T) {
	s := newServed(t)
	right, wrong := s.put(t, files(map[string]string{"a": "1"})), s.put(t, files(map[string]string{"a": "2"}))
	forged := wrong
	forged.Digest, forged.Size = right.Digest, right.Size
	swapped := newServed(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = "/" + right.Path
			server.NewHandler(s.store, server.Options{}).ServeHTTP(w, r)
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

func TestNewLoaderRefusesBadServers(t *testing.T) {
	for _, server := range []string{"", "host:80", "ftp://host", "http://", "http://u:CANARY-2@host", "http://host?x", "http://host#x"} {
		_, err := loader.New(loader.Options{
			Client: &http.Client{}, ServerURLs: []string{server}, CacheDir: t.TempDir(), Limits: fetch.DefaultLimits(),
		})
		if err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q gives %v", server, err)
		}
	}
}
