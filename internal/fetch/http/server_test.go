// SPDX-License-Identifier: Apache-2.0

package http

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

func client(t *testing.T) *http.Client {
	t.Helper()
	c := guard.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		InsecureHosts: []string{"127.0.0.1", "satchel.invalid"},
	}.HTTPClient(fetch.DefaultLimits())
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func body(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

func packed(t testing.TB, name, content string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func zipped(t testing.TB, name, content string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	entry, err := w.Create(name)
	if err == nil {
		_, err = io.WriteString(entry, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// pull fetches o with the given prior resolution.
func pull(t *testing.T, o Options, r fetch.Resolved) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	if o.Client == nil {
		o.Client = client(t)
	}
	if o.Limits == (fetch.Limits{}) {
		o.Limits = fetch.DefaultLimits()
	}
	f, err := New(o)
	if err != nil {
		return fetch.Resolved{}, nil, err
	}
	tree, err := fetch.NewTree(t.TempDir(), o.Limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	resolved, err := f.Fetch(context.Background(), r, tree)
	files := map[string]string{}
	walkErr := fs.WalkDir(tree.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree.FS(), path)
		files[path] = string(data)
		return err
	})
	if walkErr != nil {
		t.Fatal(walkErr)
	}
	return resolved, files, err
}

func chunked(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = w.Write(data)
	}
}
