// SPDX-License-Identifier: Apache-2.0

package sourcefetch

import (
	"context"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// uploaded is content that users upload, identified by its digest.
type uploaded struct{ digest string }

// Resolve implements fetch.Fetcher.
func (u uploaded) Resolve(context.Context) (fetch.Resolved, error) {
	return fetch.Resolved{Digest: u.digest, Pinned: true}, nil
}

// Fetch implements fetch.Fetcher. An upload is the whole artifact, and is in the store
// already: there is nothing to compose.
func (u uploaded) Fetch(context.Context, fetch.Resolved, *fetch.Tree) (fetch.Resolved, error) {
	return fetch.Resolved{}, fetch.Errorf(fetch.Refused, "the upload %s cannot be composed with other sources: make it the only one", u.digest)
}
