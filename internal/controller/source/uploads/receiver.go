// SPDX-License-Identifier: Apache-2.0

package uploads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
	"github.com/satchel-dev/satchel/internal/controller/upstream/figures"
	"github.com/satchel-dev/satchel/internal/controller/upstream/scratch"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

const (
	// perNamespace is how many uploads of a namespace are received at once, most how
	// many in all: each uses a worker's share of disk and CPU.
	perNamespace = 2
	most         = 8
)

// Sources is the controller of the sources that receive uploads.
type Sources interface {
	// MakeRoom calls store, and removes superseded artifacts of the source and calls it
	// again if the quota is used up.
	MakeRoom(ctx context.Context, source *v1alpha1.BundleSource, store func() (meta.Artifact, error)) (meta.Artifact, error)
	// Wake queues a source.
	Wake(ctx context.Context, source types.NamespacedName) error
}

// Receiver implements the functions of the upload server.
type Receiver struct {
	// Client creates access reviews.
	Client client.Client
	// APIReader reads sources, bypassing the cache.
	APIReader client.Reader
	// Shard selects the sources that this process reconciles.
	Shard shard.Shard
	// Tokens authenticates tokens with the audience of uploads.
	Tokens *tokenreview.Reviewer
	// Sources is told about uploads.
	Sources Sources
	// Store holds the artifacts.
	Store *storage.Store
	// Scratch is a folder for what is being received.
	Scratch string
	// Limits bound the content.
	Limits fetch.Limits
	// Measures observes uploads; may be nil.
	Measures *figures.Measures
}

// Server returns the HTTP server for uploads, with a listen address.
func (r *Receiver) Server(addr string) *http.Server {
	return upload.Server(addr, upload.Options{
		Identify: r.identify, Accept: r.accept, Present: r.present, Store: r.take, Observe: r.Measures.Upload, Tell: r.tell,
		PerNamespace: perNamespace, Most: most,
	})
}

// present tells whether content is stored. If it is, the source is queued again, in case
// it missed that.
func (r *Receiver) present(ctx context.Context, t upload.Target) (bool, error) {
	_, err := r.Store.Find(ctx, artifact.SourceOwner(t.Namespace, t.Name), t.Digest)
	switch {
	case err == nil:
		return true, r.wake(ctx, t)
	case fetch.ReasonOf(err) != "":
		return false, nil
	}
	return false, storageFailed(err)
}

// take unpacks an upload within the limits of all sources, and stores it if it has the
// announced digest. Otherwise nothing is kept.
func (r *Receiver) take(ctx context.Context, t upload.Target, archive io.Reader) error {
	source, err := r.sourceOf(ctx, t)
	if err != nil {
		return err
	}
	tree, remove, err := scratch.NewTree(r.Scratch, "upload-*", r.Limits)
	if err != nil {
		return storageFailed(err)
	}
	defer remove()
	if err := tree.UntarGzip(ctx, tree.Metered(archive)); err != nil {
		return storageFailed(scratch.UnpackingError(err))
	}
	owner := artifact.SourceOwner(t.Namespace, t.Name)
	_, err = r.Sources.MakeRoom(ctx, source, func() (meta.Artifact, error) { return r.Store.PutExactly(ctx, owner, t.Digest, tree.FS()) })
	if err != nil {
		return storageFailed(err)
	}
	return r.wake(ctx, t)
}

// wake queues the source of an upload.
func (r *Receiver) wake(ctx context.Context, t upload.Target) error {
	return r.Sources.Wake(ctx, types.NamespacedName{Namespace: t.Namespace, Name: t.Name})
}

// sourceOf reads the BundleSource of an upload from the API server, since it may have
// been written a moment ago. It must belong to this shard and name the content.
func (r *Receiver) sourceOf(ctx context.Context, t upload.Target) (*v1alpha1.BundleSource, error) {
	source := new(v1alpha1.BundleSource)
	err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, source)
	switch {
	case apierrors.IsNotFound(err):
		return nil, upload.Errorf(upload.NotFound, "%s does not exist: create it first, as satchel run does", t)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", t, err)
	case !r.Shard.Owns(source):
		return nil, upload.Errorf(upload.Elsewhere, "%s belongs to another shard: upload to the source controller that selects its labels", t)
	case !source.DeletionTimestamp.IsZero():
		return nil, upload.Errorf(upload.NotFound, "%s is being deleted", t)
	case effective.UploadDigest(&source.Spec) != t.Digest:
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
func (r *Receiver) tell(t upload.Target, err error) {
	ctrl.Log.Error(err, "an upload failed", "bundlesource", t.Namespace+"/"+t.Name)
}
