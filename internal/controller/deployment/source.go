// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// origin is where the content of a deployment comes from.
type origin struct {
	owner    artifact.Owner
	artifact *meta.Artifact
	ready    *metav1.Condition // nil when the source says nothing
	parts    []v1alpha1.RevisionOrigin
	grounds  string // digest of its spec: see groundsOf
	// unverified names the parts that require no signature.
	unverified []string
	// untrusted says why the source's current trust settings have not accepted the artifact; "" when they have, or no
	// signature is required.
	untrusted string
}

func originOf(source *v1alpha1.BundleSource) *origin {
	return &origin{
		owner: artifact.SourceOwner(source.Namespace, source.Name), artifact: source.Status.Artifact, ready: readiness(source),
		parts: originsOf(source), grounds: groundsOf(source), untrusted: untrusted(source),
		unverified: source.Spec.UnverifiedParts(),
	}
}

// untrusted says why the current trust settings of a source have not accepted what it publishes; "" when they have, or no
// signature is required. A False condition with an artifact is about newer content, which was refused: the published
// content was accepted.
func untrusted(source *v1alpha1.BundleSource) string {
	verified := conditions.Get(source, v1alpha1.SourceVerifiedCondition)
	switch {
	case !source.Spec.DemandsSignature():
		return ""
	case verified == nil:
		return "it does not say who signed it"
	case verified.Status == metav1.ConditionTrue, verified.Status == metav1.ConditionFalse && verified.Reason == v1alpha1.ReasonVerificationFailed:
		return ""
	}
	return verified.Message
}

// trusted stops a deployment if its source requires a signature and has not accepted what it publishes by its current trust
// settings, or requires none although the namespace does. A deployment that already runs that revision, unedited, continues
// with it.
func (r *Reconciler) trusted(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.appliedAsIs() {
		return pipeline.Continue, nil
	}
	if err := r.signatureRequired(ctx, s); err != nil {
		return pipeline.Stop, err
	}
	if s.resolved.source.untrusted == "" {
		return pipeline.Continue, nil
	}
	return pipeline.Stop, failure{reason: v1alpha1.ReasonSourceNotTrusted, err: fmt.Errorf(
		"the trust of bundlesource %s/%s does not accept revision %s, so that only deployments that run it already keep it, as they are: "+
			"restore the key in its Secret, or sign it with a trusted key: %s",
		s.resolved.source.owner.Namespace, s.resolved.source.owner.Name, s.revision(), s.resolved.source.untrusted)}
}

// signatureRequired fails if the namespace requires signatures by its label and the source does not for all its parts. The
// source controller publishes nothing in that case; this check does not rely on it.
func (r *Reconciler) signatureRequired(ctx context.Context, s *state) error {
	if len(s.resolved.source.unverified) == 0 {
		return nil
	}
	required, err := r.labels.Required(ctx, r.APIReader, s.object.Namespace)
	if err != nil || !required.Signatures {
		return err
	}
	return failure{reason: v1alpha1.ReasonSignatureRequired, err: fmt.Errorf(
		"namespace %s has the label %s=%s, and no signature is required of %s of %s %s/%s, so that only deployments that run revision %s already keep it, as they are: "+
			"set verify on each part of a BundleSource, or install from another namespace",
		s.object.Namespace, v1alpha1.RequireSignaturesLabel, v1alpha1.RequireSignatures, strings.Join(s.resolved.source.unverified, ", "),
		s.resolved.source.owner.Kind, s.resolved.source.owner.Namespace, s.resolved.source.owner.Name, s.revision())}
}

// findSource creates or updates the BundleSource of an inline source, or reads the
// referenced source, and takes its artifact.
func (r *Reconciler) findSource(ctx context.Context, s *state) (pipeline.Outcome, error) {
	var err error
	if ref := s.object.Spec.SourceRef; ref != nil && ref.IsFlux() {
		s.resolved.source, err = r.fluxSource(ctx, s.object)
	} else {
		s.resolved.source, err = r.currentSource(ctx, s)
	}
	if err != nil {
		return pipeline.Stop, err
	}
	if err := r.dropInlineSource(ctx, s.object); err != nil {
		return pipeline.Stop, err
	}
	s.resolved.artifact = s.resolved.source.artifact
	return pipeline.Continue, s.chooseRevision()
}

// currentSource is the BundleSource of a deployment. The cache may be outdated after a start: a revision other than
// the last one that was tried is read from the API server.
func (r *Reconciler) currentSource(ctx context.Context, s *state) (*origin, error) {
	found, err := r.ownSource(ctx, r.cached(), s.object)
	was := &s.before.Status
	known := err == nil && (found.artifact.Revision == was.LastAttemptedRevision || found.artifact.Revision == was.RejectedRevision)
	if known || was.LastAttemptedRevision == "" {
		return found, err
	}
	return r.ownSource(ctx, r.APIReader, s.object)
}

// ownSource is the BundleSource of a deployment, with an artifact.
func (r *Reconciler) ownSource(ctx context.Context, reader client.Reader, d *v1alpha1.BundleDeployment) (*origin, error) {
	find := r.referencedSource
	if d.Spec.Source != nil {
		find = r.keepInlineSource
	}
	source, err := find(ctx, reader, d)
	if err == nil {
		err = sourceProblem(source)
	}
	if err != nil {
		return nil, err
	}
	return originOf(source), nil
}

// sourceProblem says why a source has nothing to install: it was never fetched, or its
// spec changed and could not be fetched since. A source that merely cannot be polled at
// the moment still has its artifact.
func sourceProblem(source *v1alpha1.BundleSource) error {
	current := source.Status.SourcesDigest == source.Spec.SourcesDigest()
	if current && source.Status.Artifact != nil {
		return nil
	}
	ready := conditions.Get(source, meta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || source.Status.ObservedGeneration != source.Generation {
		return failure{reason: v1alpha1.ReasonSourceNotReady, waiting: true,
			err: fmt.Errorf("waiting for bundlesource %s/%s to be fetched", source.Namespace, source.Name)}
	}
	return failure{reason: v1alpha1.ReasonSourceNotReady,
		err: fmt.Errorf("bundlesource %s/%s: %s", source.Namespace, source.Name, ready.Message)}
}

func (r *Reconciler) referencedSource(ctx context.Context, reader client.Reader, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	var source v1alpha1.BundleSource
	key := client.ObjectKey{Namespace: d.Namespace, Name: d.SourceName()}
	err := reader.Get(ctx, key, &source)
	if apierrors.IsNotFound(err) {
		return nil, failure{reason: v1alpha1.ReasonSourceNotFound,
			err: fmt.Errorf("bundlesource %s does not exist: create it, or correct spec.sourceRef.name", key)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading bundlesource %s: %w", key, err)
	}
	return &source, nil
}

// keepInlineSource creates or updates the BundleSource that holds spec.source.
func (r *Reconciler) keepInlineSource(ctx context.Context, reader client.Reader, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	key := client.ObjectKeyFromObject(d)
	var source v1alpha1.BundleSource
	err := reader.Get(ctx, key, &source)
	if apierrors.IsNotFound(err) {
		return r.createInlineSource(ctx, d)
	}
	if err != nil {
		return nil, fmt.Errorf("reading bundlesource %s: %w", key, err)
	}
	if !metav1.IsControlledBy(&source, d) {
		return nil, failure{reason: v1alpha1.ReasonSourceNotOwned, stalled: true, err: fmt.Errorf(
			"bundlesource %s exists and does not belong to this deployment, which needs that name for its inline source: delete or rename it, or refer to it by spec.sourceRef", key)}
	}
	asked := requested(d) != d.Status.LastHandledReconcileAt && requested(d) != requested(&source)
	if equality.Semantic.DeepEqual(source.Spec, *d.Spec.Source) && !asked && !r.Shard.CopyLabels(d, source.DeepCopy()) {
		return &source, nil
	}
	return r.updateInlineSource(ctx, d, &source)
}

// dropInlineSource deletes the BundleSource of a former inline source once the
// deployment installs another one, unless another deployment refers to it.
func (r *Reconciler) dropInlineSource(ctx context.Context, d *v1alpha1.BundleDeployment) error {
	if d.SourceName() == d.Name {
		return nil
	}
	var source v1alpha1.BundleSource
	key := client.ObjectKeyFromObject(d)
	err := r.Client.Get(ctx, key, &source)
	switch {
	case apierrors.IsNotFound(err), err == nil && !metav1.IsControlledBy(&source, d):
		return nil
	case err != nil:
		return fmt.Errorf("reading bundlesource %s: %w", key, err)
	}
	if users, err := r.users(ctx, &source); err != nil || len(users) > 0 {
		return err
	}
	err = r.Client.Delete(ctx, &source, client.Preconditions{UID: &source.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting bundlesource %s, which held the inline source: %w", key, err)
	}
	return nil
}

func (r *Reconciler) createInlineSource(ctx context.Context, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}, Spec: *d.Spec.Source.DeepCopy()}
	if err := controllerutil.SetControllerReference(d, source, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("owning bundlesource %s/%s: %w", d.Namespace, d.Name, err)
	}
	r.Shard.CopyLabels(d, source)
	err := r.Client.Create(ctx, source, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) { // created a moment ago; the cache will show its owner
		return nil, failure{reason: v1alpha1.ReasonSourceNotReady, waiting: true,
			err: fmt.Errorf("waiting for bundlesource %s/%s to be fetched", d.Namespace, d.Name)}
	}
	if apierrors.IsForbidden(err) { // by an admission policy, which says what to do
		return nil, failure{reason: v1alpha1.ReasonSourceNotReady, err: fmt.Errorf("creating bundlesource %s/%s: %w", d.Namespace, d.Name, err)}
	}
	if err != nil {
		return nil, fmt.Errorf("creating bundlesource %s/%s: %w", d.Namespace, d.Name, err)
	}
	return source, nil
}

// updateInlineSource copies the spec, a reconcile request, and the labels of the shard.
func (r *Reconciler) updateInlineSource(ctx context.Context, d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource) (*v1alpha1.BundleSource, error) {
	before := source.DeepCopy()
	source.Spec = *d.Spec.Source.DeepCopy()
	r.Shard.CopyLabels(d, source)
	if at := requested(d); at != "" {
		metav1.SetMetaDataAnnotation(&source.ObjectMeta, meta.ReconcileRequestAnnotation, at)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := pipeline.MarkStale(r.Client.Patch(ctx, source, patch, client.FieldOwner(FieldManager))); err != nil {
		if apierrors.IsInvalid(err) {
			return nil, failure{reason: v1alpha1.ReasonSourceNotReady, stalled: true, err: fmt.Errorf("updating bundlesource %s/%s: %w", d.Namespace, d.Name, err)}
		}
		return nil, fmt.Errorf("updating bundlesource %s/%s: %w", d.Namespace, d.Name, err)
	}
	return source, nil
}

// requested is the value of the annotation that requests a reconcile.
func requested(object metav1.Object) string {
	at, _ := meta.ReconcileAnnotationValue(object.GetAnnotations())
	return at
}
