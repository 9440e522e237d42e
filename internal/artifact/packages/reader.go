// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
)

// Options say where a Reader may ask, and where it keeps answers.
type Options struct {
	// Client makes the requests. Redirects are never followed.
	Client *http.Client
	// ServerURLs are the base URLs of the servers that may be asked.
	ServerURLs []string
	// CacheDir is the folder with the answers; it is created when missing. One process uses it at a time.
	CacheDir string
	// Parse parses the blobs of a package, in a file that is open for reading only. A controller has that done in a worker process:
	// see jobs.ParsePackage.
	Parse func(ctx context.Context, namespace, name string, blobs *os.File) (lean.Parsed, error)
}

// Catalog is a catalog as its status advertises it.
type Catalog struct {
	Namespace, Name string
	// BaseURL is where it is served. Only its own path on one of the servers is accepted.
	BaseURL string
	// Content is the digest of all of it. As long as it is the same, the server is not asked.
	Content string
}

func (c Catalog) String() string { return c.Namespace + "/" + c.Name }

// Found is what a catalog says about a package.
type Found struct {
	// Package is nil if the catalog does not have it, or has left it out. It is shared, and must not be changed.
	Package *catalog.Package
	// Digest changes if and only if resolution may; "" if the catalog does not have the package.
	Digest string
	// Problem is why the catalog has left the package out.
	Problem error
}

// Reader reads packages. It is safe for concurrent use.
type Reader struct {
	client  http.Client
	servers []string
	root    *os.Root
	parse   func(ctx context.Context, namespace, name string, blobs *os.File) (lean.Parsed, error)
	decoded decoded
	busy    volume.Locks // by key: what is asked for is asked for once

	mu    sync.Mutex
	known map[string]header // by key, of the answers on disk
	// lookups are the answers of Providers and Has.
	lookups map[lookup][]string
}

// Open prepares a Reader with the answers that are on disk.
func Open(o Options) (*Reader, error) {
	if o.Client == nil || o.Parse == nil {
		return nil, errors.New("preparing to read catalogs: no HTTP client or no parser was given")
	}
	root, err := volume.OpenFolder(o.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("preparing to read catalogs: %w", err)
	}
	r := &Reader{client: *o.Client, root: root, parse: o.Parse, known: map[string]header{}}
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, server := range o.ServerURLs {
		r.servers = append(r.servers, strings.TrimRight(server, "/"))
	}
	return r, r.list()
}

// Read returns what a catalog says about a package. The answer on disk is used while the content of the catalog is the same, and
// while the server does not answer. The error says that there is no answer at all.
func (r *Reader) Read(ctx context.Context, c Catalog, name string) (Found, error) {
	key := keyOf(c, name)
	release, err := r.busy.Lock(ctx, key)
	if err != nil {
		return Found{}, fmt.Errorf("reading package %s of catalog %s: %w", name, c, err)
	}
	defer release()
	was, kept := r.recall(key)
	if kept && was.Content == c.Content && c.Content != "" {
		if found, err := r.load(key, was); err == nil {
			return found, nil
		}
		kept = false // the file is damaged
	}
	asked, err := r.ask(ctx, c, name, was, kept)
	switch {
	case err == nil:
		return asked, nil
	case !kept:
		return Found{}, fmt.Errorf("reading package %s of catalog %s: %w", name, c, err)
	}
	found, failed := r.load(key, was)
	if failed != nil {
		return Found{}, fmt.Errorf("reading package %s of catalog %s: %w", name, c, errors.Join(err, failed))
	}
	return found, nil
}

// Digest is the digest of a package in the answer on disk; false if there is none.
func (r *Reader) Digest(c Catalog, name string) (string, bool) {
	was, kept := r.recall(keyOf(c, name))
	return was.Digest, kept
}

// Forget drops the answers about a catalog that was deleted.
func (r *Reader) Forget(namespace, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed error
	for key, of := range r.known {
		if of.Namespace == namespace && of.Catalog == name {
			delete(r.known, key)
			failed = errors.Join(failed, r.root.Remove(key))
		}
	}
	return failed
}

func (r *Reader) recall(key string) (header, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, found := r.known[key]
	return was, found
}

// admit returns the address of a catalog, if it is its own path on one of the servers.
func (r *Reader) admit(c Catalog) (string, error) {
	path := "/catalogs/" + c.Namespace + "/" + c.Name
	if !slices.ContainsFunc(r.servers, func(server string) bool { return server+path == c.BaseURL }) {
		return "", fmt.Errorf("its address %.200q is not %s on one of the --artifact-servers", c.BaseURL, path)
	}
	return c.BaseURL, nil
}
