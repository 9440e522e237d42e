// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// uploadPending names the content of the spec that is not in storage, and the command to upload it.
func uploadPending(source *v1alpha1.BundleSource, why fetch.Reason) error {
	what := "the content %s is missing: upload it, with satchel run %s FOLDER -n %s"
	if why == fetch.DigestMismatch {
		what = "the uploaded content %s is damaged in storage: upload it again, with satchel run %s FOLDER -n %s"
	}
	return failure.UploadPending(fmt.Errorf(what, effective.UploadDigest(&source.Spec), source.Name, source.Namespace))
}

// publishUpload publishes the upload of the source.
func (r *Reconciler) publishUpload(ctx context.Context, s *state) (pipeline.Outcome, error) {
	found, err := r.Store.Find(ctx, s.owner, effective.UploadDigest(&s.object.Spec))
	switch {
	case fetch.ReasonOf(err) != "":
		return pipeline.Stop, uploadPending(s.object, fetch.ReasonOf(err))
	case err != nil:
		return pipeline.Stop, err
	}
	s.published = &found
	for _, part := range s.parts {
		s.resolved = append(s.resolved, part.Resolved)
	}
	return pipeline.Continue, nil
}

// Wake queues a source that received an upload.
func (r *Reconciler) Wake(ctx context.Context, source types.NamespacedName) error {
	object := &v1alpha1.BundleSource{}
	object.Namespace, object.Name = source.Namespace, source.Name
	select {
	case r.uploads <- event.GenericEvent{Object: object}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
