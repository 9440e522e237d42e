// SPDX-License-Identifier: Apache-2.0

package packages_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
)

const blobs = `{"schema":"olm.channel","package":"shop","name":"stable","entries":[{"name":"shop.v1.0.0"}]}
{"schema":"olm.bundle","package":"shop","name":"shop.v1.0.0","image":"example.org/shop:1","properties":[{"type":"olm.package","value":{"packageName":"shop","version":"1.0.0"}}]}
`

// serving is a server of one catalog, which counts what it transfers.
type serving struct {
	*httptest.Server
	asked, sent atomic.Int64
	content     atomic.Pointer[string]
	lie         atomic.Bool
}

func serve(t *testing.T) *serving {
	t.Helper()
	s := &serving{}
	text := blobs
	s.content.Store(&text)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		content := *s.content.Load()
		switch name := r.URL.Query().Get("package"); {
		case r.URL.Path != "/catalogs/team/community/api/v1/lean":
			http.NotFound(w, r)
			return
		case name == "absent":
			w.WriteHeader(http.StatusNoContent)
			return
		case name == "bad":
			http.Error(w, "two channels have one name", http.StatusUnprocessableEntity)
			return
		}
		tag := fmt.Sprintf("%q", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))))
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if s.lie.Load() {
			content += "\n"
		}
		s.sent.Add(1)
		w.Header().Set("Etag", tag)
		_, _ = w.Write([]byte(content))
	}))
	t.Cleanup(s.Close)
	return s
}

func open(t *testing.T, s *serving, dir string) *packages.Reader {
	t.Helper()
	reader, err := packages.Open(packages.Options{Client: http.DefaultClient, ServerURLs: []string{s.URL}, CacheDir: dir, Parse: parse})
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

func (s *serving) catalog(content string) packages.Catalog {
	return packages.Catalog{Namespace: "team", Name: "community", BaseURL: s.URL + "/catalogs/team/community", Content: content}
}

// A package is asked for once a content of its catalog, transferred once a content of its own, and there while the server is away,
// after a restart too: C32.
func TestC32PackagesAreKept(t *testing.T) {
	s, dir := serve(t), t.TempDir()
	reader := open(t, s, dir)
	read := func(content string) packages.Found {
		t.Helper()
		found, err := reader.Read(t.Context(), s.catalog(content), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if found.Package == nil || len(found.Package.Bundles) != 1 || found.Package.Bundles[0].Version != "1.0.0" {
			t.Fatalf("read %+v", found.Package)
		}
		return found
	}
	first := read("one")
	read("one")
	if s.asked.Load() != 1 {
		t.Errorf("asked %d times for the same content of the catalog", s.asked.Load())
	}
	read("two")
	if s.asked.Load() != 2 || s.sent.Load() != 1 {
		t.Errorf("asked %d times, and transferred %d times, for a package that did not change", s.asked.Load(), s.sent.Load())
	}
	changed := strings.ReplaceAll(blobs, "shop:1", "shop:2")
	s.content.Store(&changed)
	if moved := read("three"); moved.Digest == first.Digest || moved.Package.Bundles[0].Image != "example.org/shop:2" {
		t.Errorf("a changed package is read as %+v", moved)
	}
	s.Close()
	read("four")
	reader = open(t, s, dir)
	read("four")
}

func TestPackagesThatAreNotThere(t *testing.T) {
	s := serve(t)
	reader := open(t, s, t.TempDir())
	if found, err := reader.Read(t.Context(), s.catalog("one"), "absent"); err != nil || found.Package != nil || found.Digest != "" || found.Problem != nil {
		t.Errorf("an absent package is %+v, %v", found, err)
	}
	if found, err := reader.Read(t.Context(), s.catalog("one"), "bad"); err != nil || found.Problem == nil || !strings.Contains(found.Problem.Error(), "two channels") {
		t.Errorf("a package with a problem is %+v, %v", found, err)
	}
	elsewhere := s.catalog("one")
	elsewhere.BaseURL = "http://169.254.169.254/catalogs/team/community"
	if _, err := reader.Read(t.Context(), elsewhere, "shop"); err == nil || !strings.Contains(err.Error(), "--artifact-servers") {
		t.Errorf("another server is asked: %v", err)
	}
	s.lie.Store(true)
	if _, err := reader.Read(t.Context(), s.catalog("one"), "shop"); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("other bytes are accepted: %v", err)
	}
}

// C50: which packages provide a kind, and whether a catalog has a package, is asked once a content of the catalog. Nothing is kept of
// answers that cannot be read.
func TestC50Lookups(t *testing.T) {
	var asked atomic.Int64
	answer := `{"name":"cache"}` + "\n" + `{"name":"store"}` + "\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.Method + " " + r.URL.String() {
		case "GET /catalogs/team/community/api/v1/providers?group=example.org&kind=Cache&version=v1":
			_, _ = w.Write([]byte(answer))
		case "HEAD /catalogs/team/community/api/v1/lean?package=cache":
		case "HEAD /catalogs/team/community/api/v1/lean?package=absent":
			w.WriteHeader(http.StatusNoContent)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	reader, err := packages.Open(packages.Options{Client: server.Client(), ServerURLs: []string{server.URL}, CacheDir: t.TempDir(), Parse: parse})
	if err != nil {
		t.Fatal(err)
	}
	of := packages.Catalog{Namespace: "team", Name: "community", BaseURL: server.URL + "/catalogs/team/community", Content: "one"}
	kind := catalog.Kind{Group: "example.org", Version: "v1", Kind: "Cache"}
	for range 2 {
		if names, err := reader.Providers(t.Context(), of, kind); err != nil || !slices.Equal(names, []string{"cache", "store"}) {
			t.Errorf("the kind is provided by %q: %v", names, err)
		}
		for name, want := range map[string]bool{"cache": true, "absent": false} {
			if has, err := reader.Has(t.Context(), of, name); err != nil || has != want {
				t.Errorf("the catalog has %s: %t, %v", name, has, err)
			}
		}
	}
	if asked.Load() != 3 {
		t.Errorf("asked %d times for three answers", asked.Load())
	}
	of.Content = "two"
	for _, bad := range []string{"{}\n", "x", strings.Repeat(`{"name":"cache"}`+"\n", 5000)} {
		answer = bad
		if names, err := reader.Providers(t.Context(), of, kind); err == nil {
			t.Errorf("an answer of %d bytes is read as %d packages", len(bad), len(names))
		}
	}
	of.BaseURL = "http://169.254.169.254/catalogs/team/community"
	if _, err := reader.Has(t.Context(), of, "cache"); err == nil || !strings.Contains(err.Error(), "--artifact-servers") {
		t.Errorf("another server is asked: %v", err)
	}
}

// A damaged file is asked for again, and dropped while no server answers.
func TestDamagedFiles(t *testing.T) {
	s, dir := serve(t), t.TempDir()
	reader := open(t, s, dir)
	if _, err := reader.Read(t.Context(), s.catalog("one"), "shop"); err != nil {
		t.Fatal(err)
	}
	reader = open(t, s, dir) // which has nothing in memory
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err == nil {
		err = os.WriteFile(files[0], append(content, 'x'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if found, err := reader.Read(t.Context(), s.catalog("one"), "shop"); err != nil || found.Package == nil {
		t.Errorf("a damaged file: %+v, %v", found, err)
	}
	if s.sent.Load() != 2 {
		t.Errorf("transferred %d times", s.sent.Load())
	}
	if err := reader.Forget("team", "community"); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 {
		t.Errorf("a deleted catalog leaves %v: %v", left, err)
	}
}

// parse parses the blobs of a package in this process.
func parse(_ context.Context, _, name string, blobs *os.File) (lean.Parsed, error) {
	return lean.Parse(name, blobs)
}
