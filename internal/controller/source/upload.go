// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// pendingError says that the content in the spec is not in storage, and has to be
// uploaded.
type pendingError struct {
	source types.NamespacedName
	digest string
	why    error // the error of the storage
}

// Error names the content and the command to upload it.
func (e *pendingError) Error() string {
	if fetch.ReasonOf(e.why) == fetch.DigestMismatch {
		return fmt.Sprintf("the uploaded content %s is damaged in storage: upload it again, with satchel run %s FOLDER -n %s", e.digest, e.source.Name, e.source.Namespace)
	}
	return fmt.Sprintf("the content %s is missing: upload it, with satchel run %s FOLDER -n %s", e.digest, e.source.Name, e.source.Namespace)
}

// uploaded is content that users upload, identified by its digest.
type uploaded struct{ digest string }

// Resolve implements fetch.Fetcher.
func (u uploaded) Resolve(context.Context) (fetch.Resolved, error) {
	return fetch.Resolved{Digest: u.digest, Pinned: true}, nil
}

// Fetch implements fetch.Fetcher. An upload is the whole artifact, which publishUpload
// finds in the store: there is nothing to compose.
func (u uploaded) Fetch(context.Context, fetch.Resolved, *fetch.Tree) (fetch.Resolved, error) {
	return fetch.Resolved{}, fetch.Errorf(fetch.Refused, "the upload %s cannot be composed with other sources: make it the only one", u.digest)
}

// publishUpload publishes the upload of the source.
func (r *Reconciler) publishUpload(ctx context.Context, s *state) (pipeline.Outcome, error) {
	digest := s.object.Spec.UploadDigest()
	found, err := r.Store.Find(ctx, s.owner, digest)
	switch {
	case fetch.ReasonOf(err) != "":
		return pipeline.Stop, &pendingError{source: types.NamespacedName{Namespace: s.object.Namespace, Name: s.object.Name}, digest: digest, why: err}
	case err != nil:
		return pipeline.Stop, err
	}
	s.published = &found
	for _, part := range s.parts {
		s.resolved = append(s.resolved, part.Resolved)
	}
	return pipeline.Continue, nil
}

// uploads implements the functions of the upload server.
type uploads struct {
	*Reconciler

	tokens *tokenreview.Reviewer
}

// present tells whether content is stored. If it is, the source is queued again, in case
// it missed that.
func (u *uploads) present(ctx context.Context, t upload.Target) (bool, error) {
	_, err := u.Store.Find(ctx, artifact.SourceOwner(t.Namespace, t.Name), t.Digest)
	switch {
	case err == nil:
		return true, u.wake(ctx, t)
	case fetch.ReasonOf(err) != "":
		return false, nil
	}
	return false, storageFailed(err)
}

// take unpacks an upload within the limits of all sources, and stores it if it has the
// announced digest. Otherwise nothing is kept.
func (u *uploads) take(ctx context.Context, t upload.Target, archive io.Reader) error {
	source, err := u.sourceOf(ctx, t)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(u.Scratch, "upload-*")
	if err != nil {
		return storageFailed(&volume.StorageError{Op: "creating a temporary folder", Err: err})
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is removed at the next start
	tree, err := fetch.NewTree(dir, u.Limits)
	if err != nil {
		return storageFailed(&volume.StorageError{Op: "preparing a temporary folder", Err: err})
	}
	defer func() { _ = tree.Close() }() // read-only by then
	if err := tree.UntarGzip(ctx, tree.Metered(archive)); err != nil {
		return storageFailed(unpackingError(err))
	}
	s := newState(source, u.APIReader)
	s.published = source.Status.Artifact
	_, err = u.makingRoom(ctx, s, func() (meta.Artifact, error) { return u.Store.PutExactly(ctx, s.owner, t.Digest, tree.FS()) })
	if err != nil {
		return storageFailed(err)
	}
	return u.wake(ctx, t)
}

// wake queues a source.
func (u *uploads) wake(ctx context.Context, t upload.Target) error {
	object := &v1alpha1.BundleSource{}
	object.Namespace, object.Name = t.Namespace, t.Name
	select {
	case u.Reconciler.uploads <- event.GenericEvent{Object: object}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sourceOf reads the BundleSource of an upload from the API server, since it may have
// been written a moment ago. It must belong to this shard and name the content.
func (u *uploads) sourceOf(ctx context.Context, t upload.Target) (*v1alpha1.BundleSource, error) {
	source := new(v1alpha1.BundleSource)
	err := u.APIReader.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, source)
	switch {
	case apierrors.IsNotFound(err):
		return nil, upload.Errorf(upload.NotFound, "%s does not exist: create it first, as satchel run does", t)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", t, err)
	case !u.Shard.Owns(source):
		return nil, upload.Errorf(upload.Elsewhere, "%s belongs to another shard: upload to the source controller that selects its labels", t)
	case !source.DeletionTimestamp.IsZero():
		return nil, upload.Errorf(upload.NotFound, "%s is being deleted", t)
	case source.Spec.UploadDigest() != t.Digest:
		return nil, upload.Errorf(upload.NotNamed, "%s does not name the content %s in spec.sources.upload.digest: write that first, as satchel run does", t, t.Digest)
	}
	return source, nil
}

// storageFailed turns an error of the storage into a message for users.
func storageFailed(err error) error {
	var failed *volume.StorageError
	var quota *storage.QuotaError
	switch {
	case errors.As(err, &quota):
		return upload.Errorf(upload.QuotaExceeded, "%s", quota)
	case errors.As(err, &failed):
		return upload.Errorf(upload.StorageFailed, "the source controller's volume failed: %s", failed)
	}
	return err
}

// tell logs why an upload failed, if the response does not say it.
func (u *uploads) tell(t upload.Target, err error) {
	ctrl.Log.Error(err, "an upload failed", "bundlesource", t.Namespace+"/"+t.Name)
}
