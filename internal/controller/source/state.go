// SPDX-License-Identifier: Apache-2.0

// Package source reconciles BundleSources: it resolves what they refer to,
// fetches exactly that, composes it into one tree and publishes the tree as an
// immutable artifact.
package source

import (
	"github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// state is what one reconcile finds out. Steps record facts here; status.go
// turns them into conditions.
type state struct {
	object *v1alpha1.BundleSource
	owner  artifact.Owner

	// secrets are those that the source names.
	secrets *secrets
	// atEnd is done when the steps have ended.
	atEnd []func()

	// lost says why the advertised artifact is no longer in storage, if it is not.
	lost error
	// parts are the sources in the order of the spec, with what each resolved to.
	parts []fetch.Part
	// trusts identify, in the same order, the trust that each has to be accepted by.
	trusts []string
	// accepted are the destinations whose published content was accepted again, by a trust that has changed since.
	accepted map[string]acceptance
	// untrusted says why what is published is not accepted by the present trust until the upstream was asked.
	untrusted error
	// unsigned says why the namespace does not permit what is published; nil where it does.
	unsigned *signatureError
	// distrusted says why the published artifact is no longer accepted.
	distrusted error
	// moved tells that there is something to fetch.
	moved bool
	// published is the artifact that is in storage when the steps have ended.
	published *meta.Artifact
	// resolved is what the published artifact was made from.
	resolved []fetch.Resolved
}

func newState(object *v1alpha1.BundleSource, reader client.Reader) *state {
	return &state{
		object:  object,
		owner:   artifact.SourceOwner(object.Namespace, object.Name),
		secrets: newSecrets(reader, object.Namespace),

		accepted: map[string]acceptance{},
	}
}

// end lets go of what the steps held.
func (s *state) end() {
	for _, do := range s.atEnd {
		do()
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
	if r := s.recorded(destination); r != nil {
		return fetch.Resolved{Reference: r.Reference, Digest: r.Digest, Validator: r.Validator, VerifiedBy: r.VerifiedBy}, true
	}
	return fetch.Resolved{}, false
}

// recorded is what the status says of a destination; nil for nothing.
func (s *state) recorded(destination string) *v1alpha1.ResolvedSource {
	for i := range s.object.Status.Resolved {
		if r := &s.object.Status.Resolved[i]; r.Destination == destination {
			return r
		}
	}
	return nil
}

// sameTrust tells whether a destination was accepted by the trust that it has now.
func (s *state) sameTrust(destination, trust string) bool {
	if again, ok := s.accepted[destination]; ok {
		return again.trust == trust
	}
	r := s.recorded(destination)
	return r != nil && r.Trust == trust
}
