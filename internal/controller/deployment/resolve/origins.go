// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// originsOf lists where the parts of a source's artifact were fetched from; nil while
// its status does not match its spec.
func originsOf(source *v1alpha1.BundleSource) []v1alpha1.RevisionOrigin {
	if source.Status.SourcesDigest != effective.SourcesDigest(&source.Spec) {
		return nil
	}
	resolved := map[string]v1alpha1.ResolvedSource{}
	for _, r := range source.Status.Resolved {
		resolved[r.Destination] = r
	}
	var origins []v1alpha1.RevisionOrigin
	for _, part := range source.Spec.Sources {
		r, found := resolved[part.Destination]
		if !found {
			return nil
		}
		origins = append(origins, originOfPart(part, r))
	}
	return origins
}

func originOfPart(part v1alpha1.Source, r v1alpha1.ResolvedSource) v1alpha1.RevisionOrigin {
	o := v1alpha1.RevisionOrigin{Destination: part.Destination, Reference: r.Reference, Digest: r.Digest, VerifiedBy: r.VerifiedBy}
	switch {
	case part.Image != nil:
		o.Image = repositoryOf(part.Image.Reference)
	case part.Git != nil:
		o.Git, o.Path = part.Git.URL, part.Git.Path
	case part.HTTP != nil:
		o.URL = part.HTTP.URL
	case part.Helm != nil:
		o.Helm, o.Chart = part.Helm.URL, part.Helm.Chart
	case part.ConfigMap != nil:
		o.ConfigMap = part.ConfigMap.Name
	}
	return o
}

// repositoryOf is an image reference without tag and digest.
func repositoryOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndexByte(ref, ':'); colon > strings.LastIndexByte(ref, '/') {
		return ref[:colon]
	}
	return ref
}
