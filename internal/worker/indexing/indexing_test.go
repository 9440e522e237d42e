// SPDX-License-Identifier: Apache-2.0

package indexing_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/catalog/index"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/indexing"
)

func TestMain(m *testing.M) {
	child.Main(indexing.Handlers())
	os.Exit(m.Run())
}

// newPool has the limits of the source controller.
func newPool(t *testing.T) *worker.Pool {
	t.Helper()
	pool, err := worker.New(worker.Options{Workers: 1, CPU: 2 * time.Minute, Memory: 256 << 20, Output: 64 << 20, Wall: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool
}

func packCatalog(t *testing.T, files fs.FS) indexing.Catalog {
	t.Helper()
	write, read, err := packed.Temporary(t.TempDir(), "catalog-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	entries, err := packed.Pack(t.Context(), files, write, packed.Limits{Bytes: 1 << 30, FileBytes: 1 << 30, Entries: 1000})
	if err = errors.Join(err, write.Close()); err != nil {
		t.Fatal(err)
	}
	return indexing.Catalog{File: read, Files: entries, Root: ".", Limits: fbc.DefaultLimits()}
}

func shop(filler int) fstest.MapFS {
	return fstest.MapFS{"shop.yaml": {Data: []byte(`---
schema: olm.package
name: shop
---
schema: olm.channel
package: shop
name: stable
entries: [{name: shop.v1}, {name: shop.v2, replaces: shop.v1}]
---
schema: olm.bundle
package: shop
name: shop.v1
image: example.org/shop:1
---
schema: note
text: "` + strings.Repeat("x", filler) + `"
`)}}
}

// What a worker process writes is what the same code writes in this process, also if it is larger than one part of the stream.
func TestWorkerWritesTheSame(t *testing.T) {
	pool, files := newPool(t), shop(1<<20)
	var all, lean bytes.Buffer
	want, err := index.Build(files, ".", fbc.DefaultLimits(), &all, &lean)
	if err != nil {
		t.Fatal(err)
	}
	var gotAll, gotLean, list bytes.Buffer
	x, err := indexing.Build(t.Context(), pool, "team", packCatalog(t, files), func() (indexing.Output, error) {
		return indexing.Output{All: &gotAll, Lean: &gotLean}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, x); diff != "" || !bytes.Equal(all.Bytes(), gotAll.Bytes()) || !bytes.Equal(lean.Bytes(), gotLean.Bytes()) {
		t.Errorf("the worker process wrote %d and %d bytes, want %d and %d; index: %s", gotAll.Len(), gotLean.Len(), all.Len(), lean.Len(), diff)
	}
	file := filepath.Join(t.TempDir(), "lean")
	if err := os.WriteFile(file, lean.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	x, err = indexing.Summarize(t.Context(), pool, "team", x, opened, func() (io.Writer, error) { return &list, nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Problems) != 1 || !strings.Contains(x.Problems[0], "shop.v2, which does not exist") || !strings.HasPrefix(list.String(), `{"name":"shop"`) {
		t.Errorf("problems %q, list %s", x.Problems, list.String())
	}
}

// Refusals have the reasons of package fetch, and what takes the stream may fail.
func TestRefusals(t *testing.T) {
	pool := newPool(t)
	discard := func() (indexing.Output, error) { return indexing.Output{All: io.Discard, Lean: io.Discard}, nil }
	limited := packCatalog(t, shop(1))
	limited.Limits.Blob = 10
	for name, tc := range map[string]struct {
		catalog indexing.Catalog
		output  func() (indexing.Output, error)
		reason  fetch.Reason
		says    string
	}{
		"syntax":  {packCatalog(t, fstest.MapFS{"a.yaml": {Data: []byte("{")}}), discard, fetch.InvalidContent, "a.yaml, blob 1"},
		"limit":   {limited, discard, fetch.LimitExceeded, "shop.yaml, blob 1: more than 10 bytes of one blob"},
		"memory":  {packCatalog(t, fstest.MapFS{"a.json": {Data: []byte(`{"schema":"x","a":[` + strings.Repeat("{},", 5<<20) + `{}]}`)}}), discard, fetch.LimitExceeded, "exceeded the limit of 256 MiB memory"},
		"no room": {packCatalog(t, shop(1)), func() (indexing.Output, error) { return indexing.Output{}, errFull }, "", errFull.Error()},
		"full":    {packCatalog(t, shop(1)), func() (indexing.Output, error) { return indexing.Output{All: fullDisk{}, Lean: io.Discard}, nil }, "", errFull.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := indexing.Build(t.Context(), pool, "team", tc.catalog, tc.output)
			if err == nil || fetch.ReasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v with the reason %q, want %q and %q", err, fetch.ReasonOf(err), tc.says, tc.reason)
			}
		})
	}
	if _, err := indexing.Build(t.Context(), pool, "team", packCatalog(t, shop(1)), discard); err != nil {
		t.Errorf("after that, nothing is indexed any more: %v", err)
	}
}

var errFull = errors.New("the volume is full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// A result with parts of a stream without a Request.Stream ends the worker process.
func TestStreamIsNotExpected(t *testing.T) {
	pool := newPool(t)
	_, err := indexing.Build(t.Context(), withoutStream{pool}, "team", packCatalog(t, shop(1)), nil)
	var crash *worker.CrashError
	if !errors.As(err, &crash) {
		t.Errorf("got %v", err)
	}
}

type withoutStream struct{ pool *worker.Pool }

func (w withoutStream) Run(ctx context.Context, r worker.Request) ([]byte, error) {
	r.Stream = nil
	return w.pool.Run(ctx, r)
}

// C22: the public catalog is indexed within the limits of a worker process.
func TestC22PublicCatalogInAWorker(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("the public catalog takes seconds to index: set SATCHEL_FULL=1")
	}
	archive, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "shared", "corpus", "catalog", "community.jsonl.xz"))
	if err != nil {
		t.Fatal(err)
	}
	xz, missing := exec.LookPath("xz")
	if _, err := os.Stat(archive); err != nil || missing != nil {
		t.Skip("the public catalog is not beside the repository (../shared/corpus/catalog), or there is no xz")
	}
	dir := t.TempDir()
	unpacked, err := os.Create(filepath.Join(dir, "catalog.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), xz, "--decompress", "--stdout", archive)
	command.Stdout = unpacked
	if err := errors.Join(command.Run(), unpacked.Close()); err != nil {
		t.Fatal(err)
	}
	catalog, pool := packCatalog(t, os.DirFS(dir)), newPool(t)
	began := time.Now()
	x, err := indexing.Build(t.Context(), pool, "team", catalog, func() (indexing.Output, error) {
		return indexing.Output{All: io.Discard, Lean: io.Discard}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d packages, %d bytes, in %s", len(x.Packages), x.AllBytes, time.Since(began))
}
