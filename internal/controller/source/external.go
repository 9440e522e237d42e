// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
)

// keepExternal updates the ExternalArtifact of the source's name, by which Flux
// consumes artifacts of other controllers (Flux RFC-0012), or deletes it when it is no
// longer wanted. Consumers read only its status.
func (r *Reconciler) keepExternal(ctx context.Context, s *state) error {
	if !s.object.Spec.ExternalArtifact && s.object.Status.ExternalArtifact == "" {
		return nil
	}
	var found sourcev1.ExternalArtifact
	key := client.ObjectKeyFromObject(s.object)
	err := r.APIReader.Get(ctx, key, &found)
	switch {
	case !s.object.Spec.ExternalArtifact:
		return r.dropExternal(ctx, s, &found, err)
	case apimeta.IsNoMatchError(err):
		return failure.ExternalArtifact(fmt.Errorf("the cluster does not serve %s of %s: install Flux 2.7 or later, or set spec.externalArtifact to false",
			sourcev1.ExternalArtifactKind, sourcev1.GroupVersion))
	case apierrors.IsNotFound(err):
		if found, err = r.createExternal(ctx, s); err != nil {
			return err
		}
	case err != nil:
		return failure.ExternalArtifact(fmt.Errorf("reading externalartifact %s: %w", key, err))
	case !metav1.IsControlledBy(&found, s.object):
		foreign := failure.ExternalArtifact(fmt.Errorf("externalartifact %s exists and does not belong to this source: "+
			"delete it, rename the source, or set spec.externalArtifact to false", key))
		foreign.Stalled = true
		return foreign
	}
	s.object.Status.ExternalArtifact = key.Name
	return r.showExternal(ctx, s, &found)
}

// externalSpec points back to the source.
func externalSpec(source *v1alpha1.BundleSource) sourcev1.ExternalArtifactSpec {
	return sourcev1.ExternalArtifactSpec{SourceRef: &meta.NamespacedObjectKindReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleSourceKind, Name: source.Name, Namespace: source.Namespace,
	}}
}

func (r *Reconciler) createExternal(ctx context.Context, s *state) (sourcev1.ExternalArtifact, error) {
	created := sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: s.object.Namespace, Name: s.object.Name}, Spec: externalSpec(s.object)}
	err := controllerutil.SetControllerReference(s.object, &created, r.Client.Scheme())
	if err == nil {
		err = r.Client.Create(ctx, &created, client.FieldOwner(FieldManager))
	}
	if err != nil {
		return created, failure.ExternalArtifact(fmt.Errorf("creating externalartifact %s/%s: %w", s.object.Namespace, s.object.Name, err))
	}
	return created, nil
}

// showExternal writes the published artifact, if it changed.
func (r *Reconciler) showExternal(ctx context.Context, s *state, external *sourcev1.ExternalArtifact) error {
	before := external.DeepCopy()
	external.Spec = externalSpec(s.object)
	if !equality.Semantic.DeepEqual(before.Spec, external.Spec) {
		if err := r.Client.Patch(ctx, external, client.MergeFrom(before), client.FieldOwner(FieldManager)); err != nil {
			return failure.ExternalArtifact(fmt.Errorf("writing externalartifact %s/%s: %w", external.Namespace, external.Name, err))
		}
		before = external.DeepCopy()
	}
	external.Status.Artifact = withOrigin(s.offered(), s.originRevision())
	switch {
	case external.Status.Artifact != nil:
		pipeline.SetReady(external, v1alpha1.ReasonSucceeded, "stored artifact for revision "+s.published.Revision)
	case s.unsigned != nil:
		pipeline.SetCondition(external, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonSignatureRequired, s.unsigned.Error())
	case s.untrusted != nil:
		pipeline.SetCondition(external, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonTrustChanged,
			fmt.Sprintf("bundlesource %s/%s publishes an artifact that its current trust settings have not accepted yet", s.object.Namespace, s.object.Name))
	default:
		pipeline.SetCondition(external, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonArtifactLost,
			fmt.Sprintf("bundlesource %s/%s publishes no artifact at present", s.object.Namespace, s.object.Name))
	}
	if err := r.writer.Write(ctx, before, external); err != nil {
		return failure.ExternalArtifact(fmt.Errorf("externalartifact %s/%s: %w", external.Namespace, external.Name, err))
	}
	return nil
}

// withOrigin adds the origin revision to the metadata of an artifact, where consumers of Flux look for it; nil stays nil.
func withOrigin(artifact *meta.Artifact, originRevision string) *meta.Artifact {
	if artifact == nil || originRevision == "" {
		return artifact
	}
	artifact = artifact.DeepCopy()
	if artifact.Metadata == nil {
		artifact.Metadata = map[string]string{}
	}
	artifact.Metadata[v1alpha1.OriginRevisionMetadata] = originRevision
	return artifact
}

// dropExternal deletes an ExternalArtifact that is no longer wanted; err is the error of
// reading it.
func (r *Reconciler) dropExternal(ctx context.Context, s *state, external *sourcev1.ExternalArtifact, err error) error {
	if err == nil && metav1.IsControlledBy(external, s.object) {
		err = r.Client.Delete(ctx, external, client.Preconditions{UID: &external.UID})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
		return failure.ExternalArtifact(fmt.Errorf("deleting externalartifact %s/%s, which is no longer wanted: %w", s.object.Namespace, s.object.Name, err))
	}
	s.object.Status.ExternalArtifact = ""
	return nil
}
