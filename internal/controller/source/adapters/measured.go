// SPDX-License-Identifier: Apache-2.0

package adapters

import (
	"context"
	"time"

	"github.com/satchel-dev/satchel/internal/controller/source/figures"
	"github.com/satchel-dev/satchel/internal/fetch"
	archive "github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// measured observes a fetcher.
type measured struct {
	fetch.Fetcher
	kind string
	to   *figures.Measures
}

// Resolve implements fetch.Fetcher.
func (f measured) Resolve(ctx context.Context) (r fetch.Resolved, err error) {
	began := time.Now()
	defer func() { f.to.Observe(figures.Resolving, f.kind, time.Since(began), err) }()
	return f.Fetcher.Resolve(ctx)
}

// Fetch implements fetch.Fetcher.
func (f measured) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (done fetch.Resolved, err error) {
	began := time.Now()
	defer func() { f.to.Observe(figures.Fetching, f.kind, time.Since(began), err) }()
	return f.Fetcher.Fetch(ctx, r, tree)
}

// measuredImages observes a verifier of images.
type measuredImages struct {
	image.Verifier
	to *figures.Measures
}

// Verify implements image.Verifier.
func (v measuredImages) Verify(ctx context.Context, s image.Subject) (by string, err error) {
	began := time.Now()
	defer func() { v.to.Observe(figures.Verifying, "image", time.Since(began), err) }()
	return v.Verifier.Verify(ctx, s)
}

// measuredArchives observes a verifier of archives.
type measuredArchives struct {
	archive.Verifier
	to *figures.Measures
}

// VerifyBlob implements archive.Verifier.
func (v measuredArchives) VerifyBlob(ctx context.Context, digest fetch.Digest, signature []byte) (by string, err error) {
	began := time.Now()
	defer func() { v.to.Observe(figures.Verifying, "http", time.Since(began), err) }()
	return v.Verifier.VerifyBlob(ctx, digest, signature)
}
