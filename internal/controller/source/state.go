// SPDX-License-Identifier: Apache-2.0

// Package source reconciles BundleSources: it resolves what they refer to,
// fetches exactly that, composes it into one tree and publishes the tree as an
// immutable artifact.
package source

import (
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// state is what one reconcile finds out. Steps record facts here; status.go
// turns them into conditions.
type state struct {
	object *v1alpha1.BundleSource
	owner  artifact.Owner

	// lost says why the advertised artifact is no longer in storage, if it is not.
	lost error
	// parts are the sources in the order of the spec, with what each resolved to.
	parts []fetch.Part
	// moved tells that there is something to fetch.
	moved bool
	// published is the artifact that is in storage when the steps have ended.
	published *meta.Artifact
	// resolved is what the published artifact was made from.
	resolved []fetch.Resolved
}

func newState(object *v1alpha1.BundleSource) *state {
	return &state{
		object: object,
		owner:  artifact.SourceOwner(object.Namespace, object.Name),
	}
}

// sameSources tells whether the last artifact was made from the sources that the
// spec has now.
func (s *state) sameSources() bool {
	return s.object.Status.SourcesDigest == s.object.Spec.SourcesDigest()
}

// previous is what the source at a destination resolved to when the last
// artifact was made; nothing if the spec changed since.
func (s *state) previous(destination string) (fetch.Resolved, bool) {
	if !s.sameSources() {
		return fetch.Resolved{}, false
	}
	for _, r := range s.object.Status.Resolved {
		if r.Destination == destination {
			return fetch.Resolved{Reference: r.Reference, Digest: r.Digest, Validator: r.Validator}, true
		}
	}
	return fetch.Resolved{}, false
}
