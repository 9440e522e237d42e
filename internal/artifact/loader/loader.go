// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/cache"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Options say where a Loader may fetch from, and what it may keep.
type Options struct {
	// Client makes the requests; it should have no time-out of its own, the context has. Redirects are never followed.
	Client *http.Client
	// ServerURLs are the base URLs of the stores that may be asked; nothing else is ever contacted.
	ServerURLs []string
	// FluxServerURLs are the base URLs that may be asked for artifacts of Flux's sources.
	FluxServerURLs []string
	// CacheDir is the cache folder; it is created when missing. One process uses it at a time.
	CacheDir string
	// CacheBytes bounds the archives in the cache; 0 means 1 GiB. A larger archive cannot be loaded. Unpacked content comes
	// on top while it is open.
	CacheBytes int64
	// Limits bound what is unpacked. An archive may have as many bytes as its content may (ExtractedBytes) and 4 KiB an
	// entry: DownloadBytes bounds what a source transfers, which may be compressed better than the archive is.
	Limits fetch.Limits
	// FS is the file system of the cache; nil means the real one.
	FS volume.FileSystem
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Loader fetches, checks, caches and unpacks artifacts. It is safe for concurrent use.
type Loader struct {
	client  http.Client
	servers []string
	flux    []string // servers of Flux's sources
	limits  fetch.Limits
	cache   *cache.Cache
	now     func() time.Time
	busy    volume.Locks // by cache key: what is fetched is fetched once
	absent  absences

	hits, misses atomic.Int64
}

// New prepares a Loader and removes what a killed process left in the cache folder.
func New(o Options) (*Loader, error) {
	if o.Client == nil {
		return nil, errors.New("preparing to load artifacts: no HTTP client was given")
	}
	l := &Loader{client: *o.Client, limits: o.Limits, now: o.Now}
	if l.now == nil {
		l.now = time.Now
	}
	l.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, server := range o.ServerURLs {
		base, err := serverURL(server)
		if err != nil {
			return nil, fmt.Errorf("preparing to load artifacts: %w", err)
		}
		l.servers = append(l.servers, base)
	}
	for _, server := range o.FluxServerURLs {
		base, err := serverURL(server)
		if err != nil {
			return nil, fmt.Errorf("preparing to load artifacts of Flux: %w", err)
		}
		l.flux = append(l.flux, base)
	}
	opened, err := cache.Open(cache.Options{Dir: o.CacheDir, Bytes: o.CacheBytes, FS: o.FS, Now: l.now})
	if err != nil {
		return nil, fmt.Errorf("preparing to load artifacts: %w", err)
	}
	l.cache = opened
	return l, nil
}

// serverURL checks the base URL of a store and returns it without a slash at its end.
func serverURL(server string) (string, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return "", fmt.Errorf("artifact server %.200q is not of the form http://host:port", server)
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return "", fmt.Errorf("artifact server %s: a base URL has no user, query or fragment", base.Redacted())
	}
	return strings.TrimRight(server, "/"), nil
}

// Wanted is an artifact that has passed Loader.Admit.
type Wanted struct {
	owner    artifact.Owner
	url      string
	digest   string // of the file, hexadecimal
	identity string // of the content, hexadecimal; "" when unknown
	size     *int64
	// advertised is when its source said that it is there.
	advertised time.Time
}

// Load returns the files of an owner's artifact: from the cache when it was loaded before, whether the server runs or
// not. The reason of the error is fetch.Refused for a URL that is not the owner's path on a configured server,
// fetch.NotFound when the server no longer has it (of which it is asked once in five seconds), fetch.Unreachable or fetch.Timeout when it does not answer,
// fetch.DigestMismatch for other bytes than advertised, fetch.LimitExceeded beyond the limits; a *StorageError means that
// the cache cannot take it. The caller closes the content.
func (l *Loader) Load(ctx context.Context, o artifact.Owner, a meta.Artifact) (*Content, error) {
	want, err := l.Admit(o, a)
	if err != nil {
		return nil, fetch.Describe(&fetch.Error{Reason: fetch.Refused, Err: err}, "loading the artifact of %s", o)
	}
	want.advertised = a.LastUpdateTime.Time
	archive, err := l.obtain(ctx, want)
	if err != nil {
		return nil, fetch.Describe(err, "loading the artifact of %s", o)
	}
	defer archive.Close() //nolint:errcheck // only read from
	content, err := l.unpack(ctx, archive, want.identity)
	if err != nil {
		return nil, fetch.Describe(err, "unpacking the artifact of %s", o)
	}
	return content, nil
}

// Admit decides whether what a status advertises may be fetched for this owner at all. The URL is compared as a whole:
// a configured server, this owner's folder, the identity of the revision.
func (l *Loader) Admit(o artifact.Owner, a meta.Artifact) (Wanted, error) {
	if err := o.Validate(); err != nil {
		return Wanted{}, err
	}
	if o.Kind != artifact.SourceKind {
		return l.admitForeign(o, a)
	}
	identity, err := artifact.ParseIdentity(a.Revision)
	if err != nil {
		return Wanted{}, err
	}
	digest, err := artifact.ParseDigest(a.Digest)
	if err != nil {
		return Wanted{}, err
	}
	for _, server := range l.servers {
		if a.URL == server+"/"+o.File(identity) {
			return Wanted{owner: o, url: a.URL, digest: digest, identity: identity, size: a.Size}, nil
		}
	}
	return Wanted{}, fmt.Errorf("its URL %.300q is not the path %q on an artifact server that this controller is configured for",
		a.URL, "/"+o.File(identity))
}

// Stats are figures of a Loader.
type Stats struct {
	// Hits is how many loads needed no download, Misses how many needed one.
	Hits, Misses int64
	// Bytes is what the cached archives take.
	Bytes int64
}

// Stats returns the figures of now.
func (l *Loader) Stats() Stats {
	return Stats{Hits: l.hits.Load(), Misses: l.misses.Load(), Bytes: l.cache.Size()}
}

// obtain opens the archive, and fetches it first when the cache has none that is sound.
func (l *Loader) obtain(ctx context.Context, want Wanted) (*os.File, error) {
	unlock, err := l.busy.Lock(ctx, cache.Key(want.owner, want.digest))
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer l.cache.Hold(cache.Key(want.owner, want.digest))()
	archive, ok, err := l.cache.Open(want.owner, want.digest)
	if err != nil {
		return nil, err
	}
	if ok {
		l.hits.Add(1)
		return archive, nil
	}
	l.misses.Add(1)
	if err := l.absent.recall(want, l.now()); err != nil {
		return nil, err
	}
	if err := l.download(ctx, want); err != nil {
		l.absent.note(want, l.now(), err)
		return nil, err
	}
	archive, ok, err = l.cache.Open(want.owner, want.digest)
	if err == nil && !ok {
		err = volume.WrapError("reading back a cached artifact", volume.ErrReplaced)
	}
	return archive, err
}
