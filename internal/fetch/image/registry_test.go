// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/google/go-containerregistry/pkg/name"
	upstreams "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	"github.com/sirupsen/logrus"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

// upstream is a registry that records what it is asked.
type upstream struct {
	*httptest.Server
	host string

	mutex    sync.Mutex
	requests []string
	change   func(w http.ResponseWriter, r *http.Request) bool // true when it answered
}

func serve(t testing.TB, handler http.Handler) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mutex.Lock()
		u.requests = append(u.requests, r.Method+" "+r.URL.Path)
		change := u.change
		u.mutex.Unlock()
		if change == nil || !change(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	u.host = strings.TrimPrefix(u.URL, "http://")
	t.Cleanup(u.Close)
	return u
}

// alter begins to change answers, and forgets the requests so far.
func (u *upstream) alter(change func(w http.ResponseWriter, r *http.Request) bool) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.change, u.requests = change, nil
}

func (u *upstream) seen() []string {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return append([]string{}, u.requests...)
}

// servers are the registries that everything is tried on.
func servers(t *testing.T) map[string]*upstream {
	t.Helper()
	return map[string]*upstream{
		"Distribution":        serve(t, distribution("", nil)),
		"GoContainerRegistry": small(t),
	}
}

// distribution is a CNCF Distribution registry that keeps its content in a folder, or else in memory.
func distribution(folder string, auth configuration.Auth) http.Handler {
	config := &configuration.Configuration{Auth: auth}
	config.Storage = configuration.Storage{"inmemory": nil}
	if folder != "" {
		config.Storage = configuration.Storage{"filesystem": {"rootdirectory": folder}}
	}
	config.Storage["maintenance"] = configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}}
	config.Log.Level = "fatal"
	config.HTTP.Secret = "test"
	logrus.SetOutput(io.Discard) // Distribution's logger is global
	return handlers.NewApp(context.Background(), config)
}

func small(t testing.TB) *upstream {
	t.Helper()
	return serve(t, upstreams.New(upstreams.Logger(log.New(io.Discard, "", 0)), upstreams.WithReferrersSupport(true)))
}

func client() *http.Client {
	return guard.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		InsecureHosts: []string{"127.0.0.1", "localhost"},
	}.HTTPClient(fetch.DefaultLimits())
}

func options(ref string) Options {
	return Options{Ref: ref, Insecure: true, Client: client(), Limits: fetch.DefaultLimits()}
}

// pull resolves and fetches into a new tree.
func pull(t *testing.T, o Options) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	f, err := New(o)
	if err != nil {
		return fetch.Resolved{}, nil, err
	}
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		return resolved, nil, err
	}
	return fetchInto(t, f, resolved, o.Limits)
}

func fetchInto(t *testing.T, f *Fetcher, r fetch.Resolved, l fetch.Limits) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	t.Cleanup(f.places[0].client.CloseIdleConnections)
	tree, err := fetch.NewTree(t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	resolved, err := f.Fetch(context.Background(), r, tree)
	if err != nil {
		return resolved, nil, err
	}
	files := map[string]string{}
	err = fs.WalkDir(tree.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree.FS(), path)
		files[path] = string(data)
		return err
	})
	return resolved, files, err
}

// packed is a tar archive of files, given as name and content in turn.
func packed(t testing.TB, files ...string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: files[i], Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
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

func zstandard(t testing.TB, data []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return encoder.EncodeAll(data, nil)
}

func layer(t testing.TB, files ...string) v1.Layer {
	t.Helper()
	return staticLayer(gzipped(t, packed(t, files...)))
}

func staticLayer(blob []byte) v1.Layer { return static.NewLayer(blob, types.OCILayer) }

func imageOf(t testing.TB, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func push(t testing.TB, ref string, what remote.Taggable) {
	t.Helper()
	parsed, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	switch what := what.(type) {
	case v1.Image:
		err = remote.Write(parsed, what)
	case v1.ImageIndex:
		err = remote.WriteIndex(parsed, what)
	default:
		err = remote.Put(parsed, what)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func digestOf(t testing.TB, what interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := what.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// waits returns for how many seconds a server asked to be left alone.
func waits(err error) int {
	var typed *fetch.Error
	if !errors.As(err, &typed) {
		return 0
	}
	return int(typed.RetryAfter.Seconds())
}
