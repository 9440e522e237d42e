// SPDX-License-Identifier: Apache-2.0

// Package catalog reconciles BundleCatalogs: it resolves what they refer to, fetches and verifies it as the content of a
// BundleSource is, has it indexed in a worker process, and stores it for the artifact server.
package catalog

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	lean "github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// state holds the facts of one reconcile. Steps record facts here; status.go turns them into conditions.
type state struct {
	object *v1alpha1.BundleCatalog
	key    types.NamespacedName
	// spec is where the content comes from.
	spec *v1alpha1.BundleSourceSpec

	// secrets reads the Secrets that the source references.
	secrets *credentials.Secrets
	// adapters fetch what the source references; closed when the steps have ended.
	adapters *sourcefetch.Adapters

	// served are the contents in storage, and what the artifact server serves, when the steps have ended.
	served *catalogs.Contents
	// lost says why the contents of the status are no longer in storage; nil if they are.
	lost error
	// accepted says that the served contents were accepted again by changed trust settings; nil for no.
	accepted *acceptance
	// untrusted says why the served contents are not accepted by the current trust settings before the upstream was asked.
	untrusted error
	// unsigned says why the namespace does not permit the contents; nil if it does.
	unsigned error
	// policiesRead says that the adapters know the BundleImagePolicies.
	policiesRead bool
	// denied says which policy denies the image of the catalog; nil if none does.
	denied error
	// distrusted says why the served contents are no longer accepted.
	distrusted error

	// part is the source with what it resolved to.
	part fetch.Part
	// trust identifies the trust settings of the source.
	trust string
	// moved tells that the upstream has changed and has to be fetched.
	moved bool
	// resolved is the version that the served contents were made from; nil if nothing was fetched.
	resolved *fetch.Resolved
}

// acceptance says that contents were accepted again, by other trust settings.
type acceptance struct{ trust, by string }

func (r *Reconciler) newState(object *v1alpha1.BundleCatalog) *state {
	secrets := credentials.NewSecrets(r.APIReader, object.Namespace)
	s := &state{
		object: object, key: client.ObjectKeyFromObject(object), spec: effective.CatalogSource(&object.Spec),
		secrets: secrets, adapters: r.adapters.For(secrets, object.Spec.ServiceAccountName),
	}
	s.adapters.Only = &image.Only{Path: object.Spec.Path, Label: lean.ConfigsLabel}
	return s
}

// source is the only source of the spec.
func (s *state) source() v1alpha1.Source { return s.spec.Sources[0] }

// sameSource tells whether the served contents were made from the current source and path of the spec.
func (s *state) sameSource() bool {
	return s.object.Status.SourcesDigest == effective.CatalogDigest(&s.object.Spec)
}

// recorded is the entry of the source in the status; nil if there is none.
func (s *state) recorded() *v1alpha1.ResolvedSource {
	if len(s.object.Status.Resolved) == 0 {
		return nil
	}
	return &s.object.Status.Resolved[0]
}

// previous is the resolved version of the served contents; false if the spec changed since.
func (s *state) previous() (fetch.Resolved, bool) {
	r := s.recorded()
	if r == nil || !s.sameSource() {
		return fetch.Resolved{}, false
	}
	return fetch.Resolved{Reference: r.Reference, Digest: r.Digest, Validator: r.Validator, VerifiedBy: r.VerifiedBy}, true
}

// sameTrust tells whether the served contents were accepted by these trust settings.
func (s *state) sameTrust(trust string) bool {
	if s.accepted != nil {
		return s.accepted.trust == trust
	}
	r := s.recorded()
	return r != nil && r.Trust == trust
}

// root is the folder or file of the catalog in what was fetched.
func (s *state) root() string {
	found := s.adapters.Only.Found
	switch {
	case s.object.Spec.Path != "":
		return s.object.Spec.Path
	case found != "":
		return found
	}
	return "."
}
