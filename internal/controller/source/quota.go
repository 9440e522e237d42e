// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"io/fs"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
)

// put stores the fetched files. If the namespace has used up its quota, superseded
// artifacts of this source are removed, except those that are advertised, in use, or so
// recent that a client may be downloading them.
func (r *Reconciler) put(ctx context.Context, s *state, reference string, files fs.FS) (meta.Artifact, error) {
	return r.makingRoom(ctx, s, func() (meta.Artifact, error) { return r.Store.Put(ctx, s.owner, reference, files) })
}

// MakeRoom calls store, and removes superseded artifacts of a source if the quota is used
// up, except those that are advertised, in use, or so recent that a client may be
// downloading them.
func (r *Reconciler) MakeRoom(ctx context.Context, source *v1alpha1.BundleSource, store func() (meta.Artifact, error)) (meta.Artifact, error) {
	s := r.newState(source)
	s.published = source.Status.Artifact
	return r.makingRoom(ctx, s, store)
}

// makingRoom calls store, and removes superseded artifacts like put if the quota is
// used up.
func (r *Reconciler) makingRoom(ctx context.Context, s *state, store func() (meta.Artifact, error)) (meta.Artifact, error) {
	published, err := store()
	var quota *storage.QuotaError
	if !errors.As(err, &quota) {
		return published, err
	}
	inUse, failed := r.inUse(ctx, s)
	if failed != nil {
		return published, err
	}
	removed, failed := r.Store.Collect(ctx, s.owner, inUse, 0, r.Retention.TTL)
	if failed != nil || len(removed) == 0 {
		return published, err
	}
	return store()
}
