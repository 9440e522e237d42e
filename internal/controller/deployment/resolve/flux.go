// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/visible"
)

// FluxObject is a Flux source.
type FluxObject interface {
	client.Object
	conditions.Getter
	GetArtifact() *meta.Artifact
}

// FluxKinds are the kinds of Flux sources that a deployment may reference.
var FluxKinds = map[string]func() FluxObject{
	sourcev1.GitRepositoryKind:    func() FluxObject { return &sourcev1.GitRepository{} },
	sourcev1.OCIRepositoryKind:    func() FluxObject { return &sourcev1.OCIRepository{} },
	sourcev1.BucketKind:           func() FluxObject { return &sourcev1.Bucket{} },
	sourcev1.ExternalArtifactKind: func() FluxObject { return &sourcev1.ExternalArtifact{} },
}

// fluxSource is the Flux source that a deployment references, with an artifact.
func (r Sources) fluxSource(ctx context.Context, d *v1alpha1.BundleDeployment) (*stage.Origin, error) {
	ref := d.Spec.SourceRef
	newObject, known := FluxKinds[ref.Kind]
	if !known {
		return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotFound, Stalled: true, Err: fmt.Errorf("spec.sourceRef.kind %q is not known: see kubectl explain bundledeployments.spec.sourceRef", ref.Kind)}
	}
	object, name := newObject(), strings.ToLower(ref.Kind)
	key := client.ObjectKey{Namespace: d.Namespace, Name: ref.Name}
	err := r.Live.Get(ctx, key, object)
	switch {
	case apimeta.IsNoMatchError(err):
		return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotFound, Err: fmt.Errorf("the cluster does not serve %s of %s: install Flux, or correct spec.sourceRef", ref.Kind, sourcev1.GroupVersion)}
	case apierrors.IsNotFound(err):
		return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotFound, Err: fmt.Errorf("%s %s does not exist: create it, or correct spec.sourceRef.name", name, key)}
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", name, key, err)
	}
	found := &stage.Origin{
		Owner:    artifact.Owner{Kind: name, Namespace: key.Namespace, Name: key.Name},
		Artifact: object.GetArtifact(), Ready: conditions.Get(object, meta.ReadyCondition), Grounds: fluxGrounds(object),
		Unverified: []string{"the artifact"}, // what Flux verified is not known here
	}
	if found.Artifact != nil {
		found.Revision = fluxOriginRevision(found.Artifact)
		return found, nil
	}
	if found.Ready == nil || found.Ready.Status != metav1.ConditionFalse {
		return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotReady, Waiting: true, Err: fmt.Errorf("waiting for %s %s to be fetched", name, key)}
	}
	return nil, failure.Error{Reason: v1alpha1.ReasonSourceNotReady, Err: fmt.Errorf("%s %s: %s", name, key, found.Ready.Message)}
}

// longestOriginRevision bounds an origin revision in bytes, as the CRD does in characters.
const longestOriginRevision = 512

// fluxOriginRevision is the revision at the origin of an artifact, as Flux shows it: what the metadata name, such as the
// commit that an OCI artifact was pushed from, or else the artifact's own revision, which names a commit or a digest.
func fluxOriginRevision(artifact *meta.Artifact) string {
	revision := visible.Line(cmp.Or(artifact.Metadata[v1alpha1.OriginRevisionMetadata], artifact.Revision))
	return pipeline.Shorten(revision, longestOriginRevision)
}
