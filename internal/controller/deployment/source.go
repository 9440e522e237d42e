// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// trusted stops a deployment if its source requires a signature and has not accepted what it publishes by its current trust
// settings, or requires none although the namespace does. A deployment that already runs that revision, unedited, continues
// with it.
func (r *Reconciler) trusted(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.resolved.AppliedAsIs(&s.Subject) {
		return pipeline.Continue, nil
	}
	if err := r.signatureRequired(ctx, s); err != nil {
		return pipeline.Stop, err
	}
	if s.resolved.Source.Untrusted == "" {
		return pipeline.Continue, nil
	}
	return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonSourceNotTrusted, Err: fmt.Errorf(
		"the trust of bundlesource %s/%s does not accept revision %s, so that only deployments that run it already keep it, as they are: "+
			"restore the key in its Secret, or sign it with a trusted key: %s",
		s.resolved.Source.Owner.Namespace, s.resolved.Source.Owner.Name, s.resolved.Revision(), s.resolved.Source.Untrusted)}
}

// signatureRequired fails if the namespace requires signatures by its label and the source does not for all its parts. The
// source controller publishes nothing in that case; this check does not rely on it.
func (r *Reconciler) signatureRequired(ctx context.Context, s *state) error {
	if len(s.resolved.Source.Unverified) == 0 {
		return nil
	}
	required, err := r.labels.Required(ctx, r.APIReader, s.Object.Namespace)
	if err != nil || !required.Signatures {
		return err
	}
	return failure.Error{Reason: v1alpha1.ReasonSignatureRequired, Err: fmt.Errorf(
		"namespace %s has the label %s=%s, and no signature is required of %s of %s %s/%s, so that only deployments that run revision %s already keep it, as they are: "+
			"set verify on each part of a BundleSource, or install from another namespace",
		s.Object.Namespace, v1alpha1.RequireSignaturesLabel, v1alpha1.RequireSignatures, strings.Join(s.resolved.Source.Unverified, ", "),
		s.resolved.Source.Owner.Kind, s.resolved.Source.Owner.Namespace, s.resolved.Source.Owner.Name, s.resolved.Revision())}
}

// findSource creates or updates the BundleSource of an inline source, or reads the
// referenced source, and takes its artifact.
func (r *Reconciler) findSource(ctx context.Context, s *state) (pipeline.Outcome, error) {
	var err error
	if s.resolved.Source, err = r.sources().Find(ctx, s.Object, &s.Before.Status); err != nil {
		return pipeline.Stop, err
	}
	s.resolved.Artifact = s.resolved.Source.Artifact
	return pipeline.Continue, s.chooseRevision()
}

func (r *Reconciler) sources() resolve.Sources {
	return resolve.Sources{Client: r.Client, Live: r.APIReader, Cached: r.cached(), Shard: r.Shard, Manager: FieldManager}
}
