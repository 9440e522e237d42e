// SPDX-License-Identifier: Apache-2.0

// Package source reconciles BundleSources: it resolves what they refer to,
// fetches exactly that, composes it into one tree and publishes the tree as an
// immutable artifact.
package source

import (
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/source/origin"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// state holds the facts of one reconcile. Steps record facts here; status.go turns them
// into conditions.
type state struct {
	object *v1alpha1.BundleSource
	owner  artifact.Owner

	// secrets reads the Secrets that the source references.
	secrets *credentials.Secrets
	// adapters fetch what the source references; closed when the steps have ended.
	adapters *sourcefetch.Adapters

	// lost says why the advertised artifact is no longer in storage; nil if it is.
	lost error
	// parts are the sources in the order of the spec, with what each resolved to.
	parts []fetch.Part
	// trusts identify the trust settings of each source, in the same order.
	trusts []string
	// accepted are the destinations with published content that was accepted again by changed trust settings.
	accepted map[string]acceptance
	// untrusted says why the published artifact is not accepted by the current trust settings before the
	// upstream was asked.
	untrusted error
	// unsigned says why the namespace does not permit the published artifact; nil if it does.
	unsigned error
	// policiesRead says that the adapters know the BundleImagePolicies.
	policiesRead bool
	// denied says which policy denies an image of the source; nil if none does.
	denied error
	// trustChecked says that the current trust settings were compared with those by which the artifact was accepted.
	trustChecked bool
	// distrusted says why the published artifact is no longer accepted.
	distrusted error
	// moved tells that the upstream has changed and has to be fetched.
	moved bool
	// published is the artifact in storage when the steps have ended.
	published *meta.Artifact
	// resolved are the versions that the published artifact was made from.
	resolved []fetch.Resolved
	// leftOut are links that the published artifact lacks.
	leftOut []string
}

func (r *Reconciler) newState(object *v1alpha1.BundleSource) *state {
	secrets := credentials.NewSecrets(r.APIReader, object.Namespace)
	return &state{
		object:   object,
		owner:    artifact.SourceOwner(object.Namespace, object.Name),
		secrets:  secrets,
		adapters: r.adapters.For(secrets, object.Spec.ServiceAccountName),
		accepted: map[string]acceptance{},
	}
}

// sameSources tells whether the last artifact was made from the current sources of the
// spec.
func (s *state) sameSources() bool {
	return s.object.Status.SourcesDigest == effective.SourcesDigest(&s.object.Spec)
}

// previous is the resolved version of the source at a destination in the last artifact;
// false if the spec changed since.
func (s *state) previous(destination string) (fetch.Resolved, bool) {
	if !s.sameSources() {
		return fetch.Resolved{}, false
	}
	if r := s.recorded(destination); r != nil {
		return fetch.Resolved{Reference: r.Reference, Digest: r.Digest, Validator: r.Validator, VerifiedBy: r.VerifiedBy, Warning: r.Warning}, true
	}
	return fetch.Resolved{}, false
}

// recorded is the entry of a destination in the status; nil if there is none.
func (s *state) recorded(destination string) *v1alpha1.ResolvedSource {
	for i := range s.object.Status.Resolved {
		if r := &s.object.Status.Resolved[i]; r.Destination == destination {
			return r
		}
	}
	return nil
}

// sameTrust tells whether a destination was accepted by its current trust settings.
func (s *state) sameTrust(destination, trust string) bool {
	if again, ok := s.accepted[destination]; ok {
		return again.trust == trust
	}
	r := s.recorded(destination)
	return r != nil && r.Trust == trust
}

// resolvedSources are the entries of the status about what the published artifact was made from.
func (s *state) resolvedSources() []v1alpha1.ResolvedSource {
	all := make([]v1alpha1.ResolvedSource, 0, len(s.resolved))
	for i, r := range s.resolved {
		all = append(all, v1alpha1.ResolvedSource{
			Destination: s.parts[i].Destination, Reference: r.Reference, Digest: r.Digest, Validator: r.Validator,
			VerifiedBy: r.VerifiedBy, Trust: s.trusts[i], Transport: s.adapters.Transport(s.object.Spec.Sources[i]), Via: r.Via,
			Warning: pipeline.Shorten(r.Warning, 400),
		})
	}
	return all
}

// originRevision names what the published artifact was made from as the upstream does; "" while nothing is published. If the
// artifact is of earlier sources of the spec, it is unchanged.
func (s *state) originRevision() string {
	status := &s.object.Status
	switch {
	case s.published == nil:
		return ""
	case s.resolved != nil:
		return origin.Revision(s.object.Spec.Sources, s.resolvedSources())
	case s.sameSources():
		return origin.Revision(s.object.Spec.Sources, status.Resolved)
	}
	return status.OriginRevision
}
