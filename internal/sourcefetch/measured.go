// SPDX-License-Identifier: Apache-2.0

package sourcefetch

import (
	"context"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
	archive "github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// Operation is what an adapter does with its upstream.
type Operation string

// The operations.
const (
	Resolving Operation = "resolve"
	Fetching  Operation = "fetch"
	Verifying Operation = "verify"
)

// ObserveFunc is told how long an operation with a kind of source took, and how it ended.
type ObserveFunc func(operation Operation, kind string, took time.Duration, err error)

// measured observes a fetcher.
type measured struct {
	fetch.Fetcher
	kind    string
	observe ObserveFunc
}

// Resolve implements fetch.Fetcher.
func (f measured) Resolve(ctx context.Context) (r fetch.Resolved, err error) {
	began := time.Now()
	defer func() { f.observe(Resolving, f.kind, time.Since(began), err) }()
	return f.Fetcher.Resolve(ctx)
}

// Fetch implements fetch.Fetcher.
func (f measured) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (done fetch.Resolved, err error) {
	began := time.Now()
	defer func() { f.observe(Fetching, f.kind, time.Since(began), err) }()
	return f.Fetcher.Fetch(ctx, r, tree)
}

// measuredImages observes a verifier of images.
type measuredImages struct {
	image.Verifier
	observe ObserveFunc
}

// Verify implements image.Verifier.
func (v measuredImages) Verify(ctx context.Context, s image.Subject) (by string, err error) {
	began := time.Now()
	defer func() { v.observe(Verifying, "image", time.Since(began), err) }()
	return v.Verifier.Verify(ctx, s)
}

// measuredArchives observes a verifier of archives.
type measuredArchives struct {
	archive.Verifier
	observe ObserveFunc
}

// VerifyBlob implements archive.Verifier.
func (v measuredArchives) VerifyBlob(ctx context.Context, digest fetch.Digest, signature []byte) (by string, err error) {
	began := time.Now()
	defer func() { v.observe(Verifying, "http", time.Since(began), err) }()
	return v.Verifier.VerifyBlob(ctx, digest, signature)
}
