// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// FindSource creates or updates the BundleSource of an inline source, or reads the
// referenced source, and takes its artifact.
func (st *Stage) FindSource(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	var err error
	if in.Resolved.Source, err = st.Sources.Find(ctx, in.Object, &in.Before.Status, in.Resolved.Catalog); err != nil {
		return pipeline.Stop, err
	}
	if catalog := in.Resolved.Catalog; catalog != nil && !catalog.Pinned {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonSourceNotReady, Waiting: true,
			Err: fmt.Errorf("waiting for the digest of the image in bundlesource %s", in.Key())}
	}
	in.Resolved.Artifact, in.Resolved.OriginRevision = in.Resolved.Source.Artifact, in.Resolved.Source.Revision
	return pipeline.Continue, in.chooseRevision()
}

// Trust stops a deployment if its source requires a signature and has not accepted what it publishes by its current trust
// settings, or requires none although the namespace does. A deployment that already runs that revision, unedited, continues
// with it.
func (st *Stage) Trust(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if in.Resolved.AppliedAsIs(in.Subject) {
		return pipeline.Continue, nil
	}
	if err := st.signatureRequired(ctx, in); err != nil {
		return pipeline.Stop, err
	}
	if in.Resolved.Source.Untrusted == "" {
		return pipeline.Continue, nil
	}
	return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonSourceNotTrusted, Err: fmt.Errorf(
		"the trust of bundlesource %s/%s does not accept revision %s, so that only deployments that run it already keep it, as they are: "+
			"restore the key in its Secret, or sign it with a trusted key: %s",
		in.Resolved.Source.Owner.Namespace, in.Resolved.Source.Owner.Name, in.Resolved.Revision(), in.Resolved.Source.Untrusted)}
}

// signatureRequired fails if the namespace requires signatures by its label and the source does not for all its parts. The
// source controller publishes nothing in that case; this check does not rely on it.
func (st *Stage) signatureRequired(ctx context.Context, in *Input) error {
	if len(in.Resolved.Source.Unverified) == 0 {
		return nil
	}
	required, err := st.Labels.Required(ctx, st.Live, in.Object.Namespace)
	if err != nil || !required.Signatures {
		return err
	}
	return failure.Error{Reason: v1alpha1.ReasonSignatureRequired, Err: fmt.Errorf(
		"namespace %s has the label %s=%s, and no signature is required of %s of %s %s/%s, so that only deployments that run revision %s already keep it, as they are: "+
			"set verify on each part of a BundleSource, or install from another namespace",
		in.Object.Namespace, v1alpha1.RequireSignaturesLabel, v1alpha1.RequireSignatures, strings.Join(in.Resolved.Source.Unverified, ", "),
		in.Resolved.Source.Owner.Kind, in.Resolved.Source.Owner.Namespace, in.Resolved.Source.Owner.Name, in.Resolved.Revision())}
}

// chooseRevision uses the last healthy revision instead of the source's while that one
// is rejected. The rejection ends when the source has another revision, the spec
// changes, or a reconcile is requested.
func (in *Input) chooseRevision() error {
	status := &in.Object.Status
	kept := status.Internal.Artifact
	if status.Rejected.Revision == "" {
		return nil
	}
	if in.Resolved.Artifact.Revision != status.Rejected.Revision || in.asked() || kept == nil {
		status.Rejected.Revision, in.Resolved.Lifted = "", true
		return nil
	}
	owner, err := stage.OwnerOf(kept, in.Object.Namespace)
	if err != nil {
		return failure.Error{Reason: v1alpha1.ReasonRollbackFailed, Err: err}
	}
	in.Resolved.Rejected = in.Resolved.Artifact
	in.Resolved.SourceOwner = in.Resolved.Source.Owner
	in.Resolved.Source.Owner = owner
	in.Resolved.Artifact = &meta.Artifact{URL: kept.URL, Revision: kept.Revision, Digest: kept.Digest}
	in.Resolved.OriginRevision = kept.OriginRevision
	return nil
}

// asked tells that the spec changed, or a reconcile was requested, since the status was
// written.
func (in *Input) asked() bool {
	return in.Before.Status.ObservedGeneration != in.Object.Generation ||
		pipeline.Requested(in.Object) != "" && pipeline.Requested(in.Object) != in.Before.Status.LastHandledReconcileAt
}
