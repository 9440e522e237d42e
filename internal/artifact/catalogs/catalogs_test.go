// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/catalog/index"
	"github.com/satchel-dev/satchel/internal/fetch"
)

const killVariable = "SATCHEL_CATALOGS_KILL"

func TestMain(m *testing.M) {
	if at := os.Getenv(killVariable); at != "" {
		publishAndDie(at)
	}
	os.Exit(m.Run())
}

var (
	first  = types.NamespacedName{Namespace: "team-a", Name: "community"}
	second = types.NamespacedName{Namespace: "team-b", Name: "community"}
)

func open(t testing.TB, dir string, quota int64) *catalogs.Store {
	t.Helper()
	store, err := openStore(dir, quota, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func openStore(dir string, quota int64, files volume.FileSystem) (*catalogs.Store, error) {
	artifacts, err := storage.Open(storage.Options{Dir: filepath.Join(dir, "artifacts"), BaseURL: "http://localhost", NamespaceBytes: quota})
	if err != nil {
		return nil, err
	}
	return catalogs.Open(catalogs.Options{Dir: filepath.Join(dir, "catalogs"), Quota: artifacts, Bytes: 1 << 20, Files: files})
}

// publish stores a catalog with packages of these names.
func publish(store *catalogs.Store, catalog types.NamespacedName, packages ...string) (catalogs.Record, error) {
	draft, err := store.NewDraft()
	if err != nil {
		return catalogs.Record{}, err
	}
	defer draft.Discard()
	var text bytes.Buffer
	for _, name := range packages {
		fmt.Fprintf(&text, "{\"schema\":\"olm.package\",\"name\":%q}\n{\"schema\":\"olm.bundle\",\"package\":%q,\"name\":%q,\"image\":\"example.org/b\",\"properties\":[{\"type\":\"olm.gvk\",\"value\":{\"group\":\"example.org\",\"version\":\"v1\",\"kind\":%q}}]}\n", name, name, name+".v1", name)
	}
	files := fstest.MapFS{"catalog.json": {Data: text.Bytes()}}
	x, err := index.Build(files, ".", fbc.DefaultLimits(), draft.File(index.AllFile), draft.File(index.LeanFile))
	if err != nil {
		return catalogs.Record{}, err
	}
	encoded, err := x.Encode()
	if err != nil {
		return catalogs.Record{}, err
	}
	for name, content := range map[string][]byte{index.IndexFile: encoded, index.ListFile: []byte("{}\n")} {
		if _, err := draft.File(name).Write(content); err != nil {
			return catalogs.Record{}, err
		}
	}
	return store.Publish(catalog, draft, []byte("signature"))
}

func mustPublish(t testing.TB, store *catalogs.Store, catalog types.NamespacedName, packages ...string) catalogs.Record {
	t.Helper()
	record, err := publish(store, catalog, packages...)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// contentsIn lists the folders of contents.
func contentsIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "catalogs", "contents"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// C29: equal contents are stored once for all namespaces, until no catalog has them.
func TestC29EqualContentsAreStoredOnce(t *testing.T) {
	dir := t.TempDir()
	store := open(t, dir, 0)
	a, b := mustPublish(t, store, first, "shop"), mustPublish(t, store, second, "shop")
	if a.Contents != b.Contents || len(contentsIn(t, dir)) != 1 {
		t.Errorf("stored as %s and %s: %v", a.Contents, b.Contents, contentsIn(t, dir))
	}
	if err := store.Remove(first); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Contents(second); err != nil {
		t.Errorf("the other namespace lost its catalog: %v", err)
	}
	if _, err := store.Contents(first); fetch.ReasonOf(err) != fetch.NotFound {
		t.Errorf("the removed catalog: %v", err)
	}
	mustPublish(t, store, second, "bakery")
	if left := contentsIn(t, dir); len(left) != 1 || left[0] == a.Contents {
		t.Errorf("contents that no catalog has stay: %v", left)
	}
}

// C30: catalogs count against the quota of their namespace, once for equal contents, also after a restart.
func TestC30Quota(t *testing.T) {
	dir := t.TempDir()
	size := mustPublish(t, open(t, t.TempDir(), 0), first, "shop").Bytes
	store := open(t, dir, size+size/2)
	mustPublish(t, store, first, "shop")
	same := types.NamespacedName{Namespace: first.Namespace, Name: "mirror"}
	mustPublish(t, store, same, "shop")
	var quota *storage.QuotaError
	if _, err := publish(store, first, "cake"); !errors.As(err, &quota) {
		t.Errorf("two different catalogs fit: %v", err)
	}
	if contents, err := store.Contents(first); err != nil || contents.Index.Packages[0].Name != "shop" {
		t.Errorf("the former catalog is not served any more: %v", err)
	}
	if _, err := publish(open(t, dir, size+size/2), same, "cake"); !errors.As(err, &quota) {
		t.Errorf("after a restart: %v", err)
	}
	if len(contentsIn(t, dir)) != 1 {
		t.Errorf("refused contents stay: %v", contentsIn(t, dir))
	}
}

// Damaged and missing files are noticed, and replaced when the catalog is stored again.
func TestDamagedContents(t *testing.T) {
	for _, name := range []string{index.AllFile, index.LeanFile, index.ListFile, index.IndexFile, "sums"} {
		for _, remove := range []bool{false, true} {
			dir := t.TempDir()
			store := open(t, dir, 0)
			record := mustPublish(t, store, first, "shop")
			if _, err := store.Contents(first); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "catalogs", "contents", record.Contents, name)
			damage := os.WriteFile(file, []byte("x"), 0o600)
			if remove {
				damage = os.Remove(file)
			}
			if damage != nil {
				t.Fatal(damage)
			}
			again := open(t, dir, 0)
			if _, err := again.Contents(first); fetch.ReasonOf(err) == "" {
				t.Errorf("%s, removed %t: %v", name, remove, err)
			}
			if name != "sums" {
				if _, err := store.Contents(first); fetch.ReasonOf(err) == "" {
					t.Errorf("%s, removed %t, while it runs: %v", name, remove, err)
				}
			}
			mustPublish(t, again, first, "shop")
			if _, err := again.Contents(first); err != nil {
				t.Errorf("%s, stored again: %v", name, err)
			}
		}
	}
}

// countingFiles kills this process before an operation.
type countingFiles struct {
	volume.OSFileSystem
	left int
}

func (c *countingFiles) step() {
	if c.left--; c.left < 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (c *countingFiles) Create(root *os.Root, name string) (volume.File, error) {
	c.step()
	file, err := c.OSFileSystem.Create(root, name)
	return &countedFile{file, c}, err
}

func (c *countingFiles) Rename(root *os.Root, from, to string) error {
	c.step()
	return c.OSFileSystem.Rename(root, from, to)
}

func (c *countingFiles) SyncDir(root *os.Root, name string) error {
	c.step()
	return c.OSFileSystem.SyncDir(root, name)
}

type countedFile struct {
	volume.File
	files *countingFiles
}

func (f *countedFile) Sync() error {
	f.files.step()
	return f.File.Sync()
}

// publishAndDie is the main of a process that is killed while it stores a catalog.
func publishAndDie(at string) {
	dir, count, _ := strings.Cut(at, ":")
	left, err := strconv.Atoi(count)
	if err != nil {
		panic(err)
	}
	store, err := openStore(dir, 0, &countingFiles{left: left})
	if err == nil {
		_, err = publish(store, first, "bakery")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// C25: killed before any operation on the volume, the next process serves the former catalog or the new one, whole.
func TestC25KilledWhileStoring(t *testing.T) {
	seen := map[string]int{}
	for step := 0; ; step++ {
		dir := t.TempDir()
		mustPublish(t, open(t, dir, 0), first, "shop")
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), program)
		command.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d", killVariable, dir, step))
		output, died := command.CombinedOutput()
		contents, err := open(t, dir, 0).Contents(first)
		if err != nil {
			t.Fatalf("killed at step %d: %v\n%s", step, err, output)
		}
		seen[contents.Index.Packages[0].Name]++
		if left := contentsIn(t, dir); len(left) != 1 {
			t.Errorf("killed at step %d: %v stay", step, left)
		}
		if died == nil {
			break
		}
		if command.ProcessState.ExitCode() != -1 {
			t.Fatalf("step %d: it ended by itself: %v\n%s", step, died, output)
		}
	}
	if seen["shop"] < 10 || seen["bakery"] < 1 {
		t.Errorf("the former and the new catalog were served %v times", seen)
	}
}

// C33: the HTTP API is catalogd's.
func TestC33Requests(t *testing.T) {
	store := open(t, t.TempDir(), 0)
	record := mustPublish(t, store, first, "bakery", "shop")
	mustPublish(t, store, types.NamespacedName{Namespace: "platform", Name: "community"}, "shared")
	handler := &catalogs.Handler{Store: store, Shared: "platform"}
	serve := func(method, target string, header http.Header) *httptest.ResponseRecorder {
		request := httptest.NewRequest(method, target, nil)
		request.Header = header
		answer := httptest.NewRecorder()
		namespace, answerIt, ok := handler.Route(request.URL.EscapedPath())
		if shared := strings.Contains(target, "platform") || strings.HasPrefix(target, "/catalogs/community/"); ok && (namespace == "") != shared {
			t.Errorf("%s: the namespace to be permitted is %q", target, namespace)
		}
		if !ok {
			http.NotFound(answer, request)
			return answer
		}
		if err := answerIt(answer, request); err != nil {
			answer.WriteHeader(http.StatusNotFound)
		}
		return answer
	}
	const base = "/catalogs/team-a/community/api/v1/"
	for _, tc := range []struct {
		target string
		code   int
		lines  int
	}{
		{base + "all", 200, 4},
		{base + "packages", 200, 1},
		{base + "metas", 200, 4},
		{base + "metas?schema=olm.bundle", 200, 2},
		{base + "metas?schema=olm.bundle&package=shop", 200, 1},
		{base + "metas?package=shop&name=bakery.v1", 200, 0},
		{base + "metas?package=absent", 200, 0},
		{base + "metas?packages=shop", 400, 0},
		{base + "all?schema=olm.bundle", 400, 0},
		{base + "metas?name=%zz", 400, 0},
		{base + "providers?group=example.org&version=v1&kind=shop", 200, 1},
		{base + "providers?group=example.org&version=v2&kind=shop", 200, 0},
		{base + "providers?group=example.org&version=v1", 400, 0},
		{base + "providers?version=v1&kind=shop&name=shop", 400, 0},
		{base + "graphql", 404, 0},
		{"/catalogs/team-a/absent/api/v1/all", 404, 0},
		{"/catalogs/team-b/community/api/v1/all", 404, 0},
		{"/catalogs/community/api/v1/all", 200, 2},
		{"/catalogs/platform/community/api/v1/all", 200, 2},
		{"/catalogs/../team-a/community/api/v1/all", 404, 0},
		{"/catalogs/team-a%2Fcommunity/api/v1/all", 404, 0},
	} {
		answer := serve(http.MethodGet, tc.target, nil)
		if answer.Code != tc.code || answer.Code == 200 && strings.Count(answer.Body.String(), "\n") != tc.lines {
			t.Errorf("%s: %d with %q, want %d and %d lines", tc.target, answer.Code, answer.Body.String(), tc.code, tc.lines)
		}
		if answer.Code == 200 && (answer.Header().Get("Content-Type") != "application/jsonl" || answer.Header().Get("Last-Modified") == "") {
			t.Errorf("%s: headers %v", tc.target, answer.Header())
		}
		if head := serve(http.MethodHead, tc.target, nil); head.Code != tc.code || tc.code == 200 && head.Body.Len() > 0 {
			t.Errorf("HEAD %s: %d with %d bytes", tc.target, head.Code, head.Body.Len())
		}
	}
	for name, header := range map[string]http.Header{
		"If-None-Match":     {"If-None-Match": {`"` + record.Contents + `"`}},
		"If-Modified-Since": {"If-Modified-Since": {record.StoredTime.Format(http.TimeFormat)}},
	} {
		if answer := serve(http.MethodGet, base+"metas?package=shop", header); answer.Code != http.StatusNotModified {
			t.Errorf("%s: %d", name, answer.Code)
		}
	}
	whole := serve(http.MethodGet, base+"metas?schema=olm.bundle", nil).Body.String()
	part := serve(http.MethodGet, base+"metas?schema=olm.bundle", http.Header{"Range": {"bytes=5-"}})
	if part.Code != http.StatusPartialContent || part.Body.String() != whole[5:] {
		t.Errorf("a range: %d %q", part.Code, part.Body.String())
	}
}
