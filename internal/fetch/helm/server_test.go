// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

func client(t *testing.T) *http.Client {
	t.Helper()
	c := guard.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		InsecureHosts: []string{"127.0.0.1", "169.254.169.254"},
	}.HTTPClient(fetch.DefaultLimits())
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// chartArchive is a chart as "helm package" writes it.
func chartArchive(t testing.TB, name, version string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	w := tar.NewWriter(compressed)
	content := "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name + "/Chart.yaml", Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = compressed.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// asked is one request.
type asked struct {
	method, path, login, condition string
	status                         int
}

// repository is a Helm repository on a real server.
type repository struct {
	*httptest.Server

	mutex    sync.Mutex
	index    string
	tag      string
	archives map[string][]byte // by path
	requests []asked
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{archives: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// add puts an archive on the server, and returns its digest as an index has it.
func (r *repository) add(t testing.TB, path, name, version string) string {
	t.Helper()
	data := chartArchive(t, name, version)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.archives[path] = data
	return strings.TrimPrefix(fetch.SHA256(data).String(), "sha256:")
}

// set replaces the index.
func (r *repository) set(tag, index string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.tag, r.index = tag, index
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// ServeHTTP implements http.Handler.
func (r *repository) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	w := &recorder{ResponseWriter: out, status: http.StatusOK}
	switch data, found := r.archives[request.URL.Path]; {
	case strings.HasSuffix(request.URL.Path, "/index.yaml"):
		if r.tag != "" {
			w.Header().Set("ETag", r.tag)
		}
		if r.tag != "" && request.Header.Get("If-None-Match") == r.tag {
			w.WriteHeader(http.StatusNotModified)
			break
		}
		_, _ = io.WriteString(w, r.index)
	case found:
		w.Header().Set("ETag", fmt.Sprintf("%q", fetch.SHA256(data).String()))
		_, _ = w.Write(data)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	r.requests = append(r.requests, asked{
		request.Method, request.URL.Path, request.Header.Get("Authorization"), request.Header.Get("If-None-Match"), w.status,
	})
}

// taken returns the requests since the last call, in words.
func (r *repository) taken() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var lines []string
	for _, a := range r.requests {
		lines = append(lines, fmt.Sprintf("%s %s %d", a.method, a.path, a.status))
	}
	r.requests = nil
	return lines
}

// logins returns the paths of the requests that had a login.
func (r *repository) logins() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var paths []string
	for _, a := range r.requests {
		if a.login != "" {
			paths = append(paths, a.path)
		}
	}
	return paths
}

// options are those of the chart "app".
func (r *repository) options(t *testing.T, version string) Options {
	t.Helper()
	return Options{Repository: r.URL + "/charts", Chart: "app", Version: version, Client: client(t), Limits: fetch.DefaultLimits()}
}

// pull resolves and fetches.
func pull(t *testing.T, o Options) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	f, err := New(o)
	if err != nil {
		return fetch.Resolved{}, nil, err
	}
	r, err := f.Resolve(context.Background())
	if err != nil {
		return r, nil, err
	}
	return fetchOf(t, f, r)
}

func fetchOf(t *testing.T, f *Fetcher, r fetch.Resolved) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	tree, err := fetch.NewTree(t.TempDir(), f.options.Limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	done, err := f.Fetch(context.Background(), r, tree)
	files := map[string]string{}
	failed := fs.WalkDir(tree.FS(), ".", func(path string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree.FS(), path)
		files[path] = string(data)
		return err
	})
	if failed != nil {
		t.Fatal(failed)
	}
	return done, files, err
}

// indexOf is an index with entries of the chart "app".
func indexOf(entries ...string) string {
	return "apiVersion: v1\nentries:\n  app:\n" + strings.Join(entries, "") + "  other: []\ngenerated: \"2026-01-01T00:00:00Z\"\n"
}

// entryOf is the entry of a version, in the style of "helm repo index".
func entryOf(version, digest, url string) string {
	text := "  - apiVersion: v2\n    description: A chart: of several\n      lines\n"
	if digest != "" {
		text += "    digest: " + digest + "\n"
	}
	return text + "    name: app\n    urls:\n    - " + url + "\n    version: " + version + "\n"
}

// redirect has a server answer a path with a redirect.
func redirect(r *repository, path, to string) {
	r.Config.Handler = redirecting{r.Config.Handler, path, to}
}

type redirecting struct {
	http.Handler

	path, to string
}

// ServeHTTP implements http.Handler.
func (r redirecting) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == r.path {
		if inner, ok := r.Handler.(*repository); ok {
			inner.ServeHTTP(httptest.NewRecorder(), request) // which notes it
		}
		http.Redirect(w, request, r.to, http.StatusFound)
		return
	}
	r.Handler.ServeHTTP(w, request)
}
