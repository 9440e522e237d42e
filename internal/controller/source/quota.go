// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"io/fs"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// put stores what was fetched. Where the namespace has no room left, superseded
// artifacts of this source give way, but for those that are advertised, in use, or
// so recent that somebody may be downloading them.
func (r *Reconciler) put(ctx context.Context, s *state, reference string, files fs.FS) (meta.Artifact, error) {
	return r.makingRoom(ctx, s, func() (meta.Artifact, error) { return r.Store.Put(ctx, s.owner, reference, files) })
}

// makingRoom stores something, as put does.
func (r *Reconciler) makingRoom(ctx context.Context, s *state, store func() (meta.Artifact, error)) (meta.Artifact, error) {
	published, err := store()
	var quota *artifact.QuotaError
	if !errors.As(err, &quota) {
		return published, err
	}
	inUse, failed := r.inUse(ctx, s)
	if failed != nil {
		return published, err
	}
	removed, failed := r.Store.Collect(ctx, s.owner, inUse, 0, r.RetainFor)
	if failed != nil || len(removed) == 0 {
		return published, err
	}
	return store()
}
