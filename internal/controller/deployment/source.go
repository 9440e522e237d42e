// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/report"
	"github.com/satchel-dev/satchel/internal/controller/step"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// origin is where the content of a deployment comes from.
type origin struct {
	owner    artifact.Owner
	artifact *meta.Artifact
	ready    *metav1.Condition // nil when the source says nothing
	parts    []v1alpha1.RevisionOrigin
}

func originOf(source *v1alpha1.BundleSource) *origin {
	return &origin{
		owner: artifact.SourceOwner(source.Namespace, source.Name), artifact: source.Status.Artifact, ready: readiness(source),
		parts: originsOf(source),
	}
}

// findSource keeps the inline source in a BundleSource of the deployment's name,
// or reads the referenced one, and takes its artifact.
func (r *Reconciler) findSource(ctx context.Context, s *state) (step.Outcome, error) {
	var err error
	if ref := s.object.Spec.SourceRef; ref != nil && ref.IsFlux() {
		s.source, err = r.fluxSource(ctx, s.object)
	} else {
		s.source, err = r.ownSource(ctx, s.object)
	}
	if err != nil {
		return step.Stop, err
	}
	if err := r.dropInlineSource(ctx, s.object); err != nil {
		return step.Stop, err
	}
	s.artifact = s.source.artifact
	return step.Continue, s.chooseRevision()
}

// ownSource is the BundleSource of a deployment, with an artifact.
func (r *Reconciler) ownSource(ctx context.Context, d *v1alpha1.BundleDeployment) (*origin, error) {
	find := r.referencedSource
	if d.Spec.Source != nil {
		find = r.keepInlineSource
	}
	source, err := find(ctx, d)
	if err == nil {
		err = sourceProblem(source)
	}
	if err != nil {
		return nil, err
	}
	return originOf(source), nil
}

// sourceProblem says why a source has nothing to install: it was never fetched,
// or its spec changed and what it names now could not be fetched. A source that
// merely cannot be polled at the moment still has its artifact.
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

func (r *Reconciler) referencedSource(ctx context.Context, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	var source v1alpha1.BundleSource
	key := client.ObjectKey{Namespace: d.Namespace, Name: d.SourceName()}
	err := r.Client.Get(ctx, key, &source)
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
func (r *Reconciler) keepInlineSource(ctx context.Context, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	key := client.ObjectKeyFromObject(d)
	var source v1alpha1.BundleSource
	err := r.Client.Get(ctx, key, &source)
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
	if equality.Semantic.DeepEqual(source.Spec, *d.Spec.Source) && !asked && !r.Shard.Carry(d, source.DeepCopy()) {
		return &source, nil
	}
	return r.updateInlineSource(ctx, d, &source)
}

// dropInlineSource deletes the BundleSource that held an inline source once the
// deployment installs another one, unless somebody refers to it.
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
	r.Shard.Carry(d, source)
	err := r.Client.Create(ctx, source, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) { // created a moment ago; the cache will show by whom
		return nil, failure{reason: v1alpha1.ReasonSourceNotReady, waiting: true,
			err: fmt.Errorf("waiting for bundlesource %s/%s to be fetched", d.Namespace, d.Name)}
	}
	if err != nil {
		return nil, fmt.Errorf("creating bundlesource %s/%s: %w", d.Namespace, d.Name, err)
	}
	return source, nil
}

// updateInlineSource carries the spec over, a request to reconcile at once, and the
// labels of the shard.
func (r *Reconciler) updateInlineSource(ctx context.Context, d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource) (*v1alpha1.BundleSource, error) {
	before := source.DeepCopy()
	source.Spec = *d.Spec.Source.DeepCopy()
	r.Shard.Carry(d, source)
	if at := requested(d); at != "" {
		metav1.SetMetaDataAnnotation(&source.ObjectMeta, meta.ReconcileRequestAnnotation, at)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := report.Stale(r.Client.Patch(ctx, source, patch, client.FieldOwner(FieldManager))); err != nil {
		if apierrors.IsInvalid(err) {
			return nil, failure{reason: v1alpha1.ReasonSourceNotReady, stalled: true, err: fmt.Errorf("updating bundlesource %s/%s: %w", d.Namespace, d.Name, err)}
		}
		return nil, fmt.Errorf("updating bundlesource %s/%s: %w", d.Namespace, d.Name, err)
	}
	return source, nil
}

// requested is the value of the annotation that asks for a reconcile now.
func requested(object metav1.Object) string {
	at, _ := meta.ReconcileAnnotationValue(object.GetAnnotations())
	return at
}
