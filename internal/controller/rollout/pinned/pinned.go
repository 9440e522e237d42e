// SPDX-License-Identifier: Apache-2.0

// Package pinned reads the BundleSource that a rollout follows, and pins its sources to what they resolved to.
package pinned

import (
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/pin"
)

// Sources are the sources of a BundleSource by the digests that they resolved to. What cannot be pinned stays as it is: the content that it has when it is
// fetched again is compared.
func Sources(source *v1alpha1.BundleSource) []v1alpha1.Source {
	resolved := map[string]v1alpha1.ResolvedSource{}
	for _, one := range source.Status.Resolved {
		resolved[one.Destination] = one
	}
	all := make([]v1alpha1.Source, 0, len(source.Spec.Sources))
	for i := range source.Spec.Sources {
		part := &source.Spec.Sources[i]
		origins := []v1alpha1.RevisionOrigin{originOf(part, resolved[part.Destination])}
		one, err := pin.Sources([]v1alpha1.Source{*part}, origins, origins)
		if err != nil { // such as a tag that is signed, or nothing known of it
			one = []v1alpha1.Source{*part}
		}
		all = append(all, *one[0].DeepCopy())
	}
	return all
}

// originOf is what a source resolved to, as histories have it.
func originOf(part *v1alpha1.Source, to v1alpha1.ResolvedSource) v1alpha1.RevisionOrigin {
	origin := v1alpha1.RevisionOrigin{Destination: part.Destination, Reference: to.Reference, Digest: to.Digest}
	switch {
	case part.Image != nil:
		origin.Image, _, _ = strings.Cut(part.Image.Reference, "@")
		if colon := strings.LastIndexByte(origin.Image, ':'); colon > strings.LastIndexByte(origin.Image, '/') {
			origin.Image = origin.Image[:colon]
		}
	case part.Git != nil:
		origin.Git = part.Git.URL
		origin.Path = part.Git.Path
	case part.HTTP != nil:
		origin.URL = part.HTTP.URL
	case part.Helm != nil:
		origin.Helm = part.Helm.URL
		origin.Chart = part.Helm.Chart
	case part.ConfigMap != nil:
		origin.ConfigMap = part.ConfigMap.Name
	}
	return origin
}

// Usable tells whether a source publishes what its spec says now.
func Usable(source *v1alpha1.BundleSource) bool {
	return source.Status.Artifact != nil && source.Status.ObservedGeneration == source.Generation && conditions.IsTrue(source, meta.ReadyCondition)
}

// Message is what a source says of itself.
func Message(source *v1alpha1.BundleSource) string {
	ready := conditions.Get(source, meta.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return "it was not reconciled yet"
	}
	return ready.Message
}

// Version names what a source publishes as its upstream does.
func Version(source *v1alpha1.BundleSource) string {
	if source.Status.OriginRevision != "" {
		return source.Status.OriginRevision
	}
	return source.Status.Artifact.Revision
}
