// SPDX-License-Identifier: Apache-2.0

package notify

import (
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// ofExternalArtifact is the event of a BundleSource as one of the ExternalArtifact that shows its artifact to Flux. Flux's
// CRDs let an Alert name an ExternalArtifact, and no kind of Satchel.
func ofExternalArtifact(event eventv1.Event, regarding runtime.Object) (eventv1.Event, bool) {
	source, ok := regarding.(*v1alpha1.BundleSource)
	if !ok || source.Status.ExternalArtifact == "" {
		return event, false
	}
	event.InvolvedObject = corev1.ObjectReference{
		APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.ExternalArtifactKind,
		Namespace: source.Namespace, Name: source.Status.ExternalArtifact,
	}
	event.Metadata = revisionMetadata(sourcev1.GroupVersion.Group, regarding)
	return event, true
}

// revisionsOf are the revision that an event is about and its origin revision; empty where there is none yet.
func revisionsOf(object runtime.Object) (revision, origin string) {
	switch o := object.(type) {
	case *v1alpha1.BundleSource:
		if o.Status.Artifact != nil {
			return o.Status.Artifact.Revision, o.Status.OriginRevision
		}
	case *v1alpha1.BundleDeployment:
		revision = o.Status.Attempted.Revision
		if len(o.Status.History) > 0 && o.Status.History[0].Revision == revision {
			origin = o.Status.History[0].OriginRevision
		}
		if o.Status.Applied.Revision == revision && o.Status.Applied.OriginRevision != "" {
			origin = o.Status.Applied.OriginRevision
		}
	}
	return revision, origin
}

// revisionMetadata has the revision and its origin under the keys that Flux expects: it drops keys that do not begin with the
// API group of the object.
func revisionMetadata(group string, object runtime.Object) map[string]string {
	revision, origin := revisionsOf(object)
	if revision == "" {
		return nil
	}
	metadata := map[string]string{group + "/" + eventv1.MetaRevisionKey: revision}
	if origin != "" {
		metadata[group+"/"+eventv1.MetaOriginRevisionKey] = origin
	}
	return metadata
}
