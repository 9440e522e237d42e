// SPDX-License-Identifier: Apache-2.0

package resolve

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
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

func originOf(source *v1alpha1.BundleSource) *stage.Origin {
	return &stage.Origin{
		Owner: artifact.SourceOwner(source.Namespace, source.Name), Artifact: source.Status.Artifact, Revision: source.Status.OriginRevision,
		Ready: Readiness(source), Parts: originsOf(source), Grounds: groundsOf(source), Untrusted: Untrusted(source),
		Unverified: effective.UnverifiedParts(&source.Spec),
	}
}

// Untrusted says why the current trust settings of a source have not accepted what it publishes; "" when they have, or no
// signature is required: by its spec, or by a BundleImagePolicy, of which only the condition tells. A False condition with an artifact is about newer content, which was refused: the published
// content was accepted.
func Untrusted(source *v1alpha1.BundleSource) string {
	verified := conditions.Get(source, v1alpha1.SourceVerifiedCondition)
	switch {
	case !effective.DemandsSignature(&source.Spec) && (verified == nil || verified.Reason == v1alpha1.ReasonSignatureRequired):
		return ""
	case verified == nil:
		return "it does not say who signed it"
	case verified.Status == metav1.ConditionTrue, verified.Status == metav1.ConditionFalse && verified.Reason == v1alpha1.ReasonVerificationFailed:
		return ""
	}
	return verified.Message
}

// Sources find the sources of deployments.
type Sources struct {
	Client client.Client
	// Live bypasses the cache of Client, and Cached is what may be read of BundleSources without it.
	Live   client.Reader
	Cached func() client.Reader
	Shard  shard.Shard
	// Manager is the field manager of inline sources.
	Manager string
}

// Find creates or updates the BundleSource of an inline source, or reads the referenced source. was is the status as the
// reconcile found it. A source has an artifact. With spec.catalog, the inline source is that of the resolved bundle.
func (r Sources) Find(ctx context.Context, d *v1alpha1.BundleDeployment, was *v1alpha1.BundleDeploymentStatus, catalog *stage.Catalog) (found *stage.Origin, err error) {
	if ref := d.Spec.SourceRef; ref != nil && effective.IsFlux(ref) {
		found, err = r.fluxSource(ctx, d)
	} else {
		found, err = r.currentSource(ctx, d, was, inlineOf(d, catalog))
	}
	if err != nil {
		return nil, err
	}
	return found, r.dropInlineSource(ctx, d)
}

// currentSource is the BundleSource of a deployment. The cache may be outdated after a start: a revision other than
// the last one that was tried is read from the API server.
func (r Sources) currentSource(ctx context.Context, d *v1alpha1.BundleDeployment, was *v1alpha1.BundleDeploymentStatus, inline *inlineSource) (*stage.Origin, error) {
	found, err := r.ownSource(ctx, r.Cached(), d, inline)
	known := err == nil && (found.Artifact.Revision == was.Attempted.Revision || found.Artifact.Revision == was.Rejected.Revision)
	if known || was.Attempted.Revision == "" {
		return found, err
	}
	return r.ownSource(ctx, r.Live, d, inline)
}

// ownSource is the BundleSource of a deployment, with an artifact.
func (r Sources) ownSource(ctx context.Context, reader client.Reader, d *v1alpha1.BundleDeployment, inline *inlineSource) (*stage.Origin, error) {
	var source *v1alpha1.BundleSource
	var err error
	if inline != nil {
		source, err = r.keepInlineSource(ctx, reader, d, inline)
	} else {
		source, err = r.referencedSource(ctx, reader, d)
	}
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
	current := source.Status.SourcesDigest == effective.SourcesDigest(&source.Spec)
	if current && source.Status.Artifact != nil {
		return nil
	}
	ready := conditions.Get(source, meta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || source.Status.ObservedGeneration != source.Generation {
		return failure.Error{Reason: v1alpha1.ReasonSourceNotReady, Waiting: true,
			Err: fmt.Errorf("waiting for bundlesource %s/%s to be fetched", source.Namespace, source.Name)}
	}
	return failure.Error{Reason: v1alpha1.ReasonSourceNotReady,
		Err: fmt.Errorf("bundlesource %s/%s: %s", source.Namespace, source.Name, ready.Message)}
}

func (r Sources) referencedSource(ctx context.Context, reader client.Reader, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	var source v1alpha1.BundleSource
	key := client.ObjectKey{Namespace: d.Namespace, Name: effective.SourceName(d)}
	err := reader.Get(ctx, key, &source)
	if apierrors.IsNotFound(err) {
		return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotFound,
			Err: fmt.Errorf("bundlesource %s does not exist: create it, or correct spec.sourceRef.name", key)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading bundlesource %s: %w", key, err)
	}
	return &source, nil
}

// inlineSource is what the BundleSource of the deployment's name holds.
type inlineSource struct {
	spec        v1alpha1.BundleSourceSpec
	annotations map[string]string
}

// catalogAnnotations are those of a source with a bundle of a catalog. Another source has none of them.
var catalogAnnotations = []string{
	v1alpha1.CatalogPackageAnnotation, v1alpha1.CatalogBundleAnnotation, v1alpha1.CatalogVersionAnnotation, v1alpha1.CatalogAnnotation,
	v1alpha1.InstalledBundleAnnotation, v1alpha1.InstalledVersionAnnotation, v1alpha1.InstalledCatalogAnnotation, v1alpha1.InstalledImageAnnotation,
}

// inlineOf is spec.source, or the source of the bundle that spec.catalog resolved to; nil for a reference.
func inlineOf(d *v1alpha1.BundleDeployment, catalog *stage.Catalog) *inlineSource {
	switch {
	case d.Spec.Source != nil:
		return &inlineSource{spec: *d.Spec.Source}
	case catalog != nil:
		return &inlineSource{spec: catalog.Source, annotations: catalog.Annotations}
	}
	return nil
}

// isIn tells whether a BundleSource holds it.
func (i *inlineSource) isIn(source *v1alpha1.BundleSource) bool {
	for _, name := range catalogAnnotations {
		if source.Annotations[name] != i.annotations[name] {
			return false
		}
	}
	return equality.Semantic.DeepEqual(source.Spec, i.spec)
}

// putInto writes it into a BundleSource.
func (i *inlineSource) putInto(source *v1alpha1.BundleSource) {
	source.Spec = *i.spec.DeepCopy()
	for _, name := range catalogAnnotations {
		if value := i.annotations[name]; value != "" {
			metav1.SetMetaDataAnnotation(&source.ObjectMeta, name, value)
			continue
		}
		delete(source.Annotations, name)
	}
}

// keepInlineSource creates or updates the BundleSource that holds the inline source.
func (r Sources) keepInlineSource(ctx context.Context, reader client.Reader, d *v1alpha1.BundleDeployment, inline *inlineSource) (*v1alpha1.BundleSource, error) {
	key := client.ObjectKeyFromObject(d)
	var source v1alpha1.BundleSource
	err := reader.Get(ctx, key, &source)
	if apierrors.IsNotFound(err) {
		return r.createInlineSource(ctx, d, inline)
	}
	if err != nil {
		return nil, fmt.Errorf("reading bundlesource %s: %w", key, err)
	}
	if !metav1.IsControlledBy(&source, d) {
		return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotOwned, Stalled: true, Err: fmt.Errorf(
			"bundlesource %s exists and does not belong to this deployment, which needs that name for its inline source: delete or rename it, or refer to it by spec.sourceRef", key)}
	}
	asked := pipeline.Requested(d) != d.Status.LastHandledReconcileAt && pipeline.Requested(d) != pipeline.Requested(&source)
	if inline.isIn(&source) && !asked && !r.Shard.CopyLabels(d, source.DeepCopy()) {
		return &source, nil
	}
	return r.updateInlineSource(ctx, d, &source, inline)
}

// dropInlineSource deletes the BundleSource of a former inline source once the
// deployment installs another one, unless another deployment refers to it.
func (r Sources) dropInlineSource(ctx context.Context, d *v1alpha1.BundleDeployment) error {
	if effective.SourceName(d) == d.Name {
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
	users := 0
	if err := sourceusers.Each(ctx, r.Client, key, func(*v1alpha1.BundleDeployment) { users++ }); err != nil || users > 0 {
		return err
	}
	err = r.Client.Delete(ctx, &source, client.Preconditions{UID: &source.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting bundlesource %s, which held the inline source: %w", key, err)
	}
	return nil
}

func (r Sources) createInlineSource(ctx context.Context, d *v1alpha1.BundleDeployment, inline *inlineSource) (*v1alpha1.BundleSource, error) {
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	inline.putInto(source)
	if err := controllerutil.SetControllerReference(d, source, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("owning bundlesource %s/%s: %w", d.Namespace, d.Name, err)
	}
	r.Shard.CopyLabels(d, source)
	err := r.Client.Create(ctx, source, client.FieldOwner(r.Manager))
	if apierrors.IsAlreadyExists(err) { // created a moment ago; the cache will show its owner
		return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotReady, Waiting: true,
			Err: fmt.Errorf("waiting for bundlesource %s/%s to be fetched", d.Namespace, d.Name)}
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) { // by an admission policy, which says what to do, or a catalog with an invalid image
		return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotReady, Err: fmt.Errorf("creating bundlesource %s/%s: %w", d.Namespace, d.Name, err)}
	}
	if err != nil {
		return nil, fmt.Errorf("creating bundlesource %s/%s: %w", d.Namespace, d.Name, err)
	}
	return source, nil
}

// updateInlineSource copies the spec, a reconcile request, and the labels of the shard.
func (r Sources) updateInlineSource(ctx context.Context, d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource, inline *inlineSource) (*v1alpha1.BundleSource, error) {
	before := source.DeepCopy()
	inline.putInto(source)
	r.Shard.CopyLabels(d, source)
	if at := pipeline.Requested(d); at != "" {
		metav1.SetMetaDataAnnotation(&source.ObjectMeta, meta.ReconcileRequestAnnotation, at)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := pipeline.MarkStale(r.Client.Patch(ctx, source, patch, client.FieldOwner(r.Manager))); err != nil {
		if apierrors.IsInvalid(err) {
			return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotReady, Stalled: true, Err: fmt.Errorf("updating bundlesource %s/%s: %w", d.Namespace, d.Name, err)}
		}
		return nil, fmt.Errorf("updating bundlesource %s/%s: %w", d.Namespace, d.Name, err)
	}
	return source, nil
}

// Readiness is the Ready condition of a source; nil when it says nothing.
func Readiness(source *v1alpha1.BundleSource) *metav1.Condition {
	return conditions.Get(source, meta.ReadyCondition)
}
