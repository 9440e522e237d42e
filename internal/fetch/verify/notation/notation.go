// SPDX-License-Identifier: Apache-2.0

// Package notation verifies images that were signed with Notary Project's notation: by a trust policy and the
// certificates that it trusts.
//
// The statement of the policy for the repository decides. Its level has to enforce authenticity: strict and permissive
// do; under skip and audit any image would pass, so they are refused. What permissive and overrides only log
// (expiry, timestamps, revocation) is not asked for, as the policy says.
//
// Certificates come as entries of a Secret, and the name of an entry says for which trust stores of the policy they
// are: "tsa.acme.crt" is for "tsa:acme", "tsa.crt" for all of the type tsa, likewise with ca and signingAuthority. Any
// other name is for all of the types ca and signingAuthority, as in Flux, and never for timestamps.
//
// Plugins do not exist here: a signature that needs one is not accepted. Certificates that name a server for their
// revocation are checked there, by OCSP and else by CRL, with the client of the source, so within its address
// policy. Those servers speak plain HTTP, which the policy has to permit for them. Without an answer the state is
// unknown, which the level strict does not accept.
package notation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	upstream "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	digests "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// PolicyName is the entry of a Secret that is the trust policy.
const PolicyName = "trustpolicy.json"

// Options is who is trusted.
type Options struct {
	// Policy is the trust policy document of notation, version 1.0.
	Policy []byte
	// Certificates are the entries of a Secret. Those with names that end in .crt or .pem have to be PEM with certificates of
	// authorities, or self-signed ones; others are ignored.
	Certificates map[string][]byte
	// Client is used to check for revocations; without one they are not checked.
	Client *http.Client
}

// Verifier accepts what the trust policy accepts. It can be used by several goroutines at once.
type Verifier struct {
	policy   *trustpolicy.Document
	verifier upstream.Verifier
}

var _ image.Verifier = (*Verifier)(nil)

// New returns a verifier. A policy or certificates that cannot be read, or none, are fetch.Refused.
func New(o Options) (*Verifier, error) {
	policy, err := parsePolicy(o.Policy)
	if err != nil {
		return nil, err
	}
	certificates, err := parseStore(o.Certificates)
	if err != nil {
		return nil, err
	}
	if err := certificates.serves(policy); err != nil {
		return nil, err
	}
	// Both validators are given, as the library would make a client of its own in place of one that is missing.
	revocations, err := newRevocations(o.Client)
	if err != nil {
		return nil, err
	}
	made, err := verifier.NewWithOptions(policy, certificates, nil, revocations)
	if err != nil {
		return nil, refusedPolicy(err)
	}
	return &Verifier{policy: policy, verifier: made}, nil
}

// Verify implements image.Verifier.
func (v *Verifier) Verify(ctx context.Context, s image.Subject) (string, error) {
	scope := scopeOf(s.Repository)
	reference := scope + "@" + s.Digest.String()
	statement, err := v.applicable(reference, scope)
	if err != nil {
		return "", err
	}
	var attempts verify.Attempts
	candidates, err := listed(ctx, s, &attempts)
	if verify.Interrupts(err) {
		return "", fetch.Describe(err, "looking for signatures")
	}
	attempts.Missed(err)
	for _, candidate := range candidates {
		if err := ctx.Err(); err != nil {
			return "", fetch.NetworkError(err)
		}
		data, mediaType, err := envelope(ctx, s.Registry, candidate)
		if verify.Interrupts(err) {
			return "", fetch.Describe(err, "reading a signature")
		}
		by := ""
		if err == nil {
			by, err = v.accept(ctx, s, reference, data, mediaType)
		}
		if err == nil {
			return by, nil
		}
		attempts.Failed(err)
	}
	by := "whom the statement " + fetch.Quote(statement.Name) + " of the trust policy trusts"
	return "", attempts.Error(by, "sign it with notation sign")
}

// scopeOf is how people name a repository. go-containerregistry calls Docker Hub by another name.
func scopeOf(repository string) string {
	if rest, ok := strings.CutPrefix(repository, "index.docker.io/"); ok {
		return "docker.io/" + rest
	}
	return repository
}

// applicable returns the statement for a repository.
func (v *Verifier) applicable(reference, scope string) (*trustpolicy.TrustPolicy, error) {
	statement, err := v.policy.GetApplicableTrustPolicy(reference)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the trust policy has no statement for %s: add it to registryScopes", fetch.Quote(scope))
	}
	level, err := statement.SignatureVerification.GetVerificationLevel()
	if err != nil {
		return nil, refusedPolicy(err)
	}
	if level.Enforcement[trustpolicy.TypeAuthenticity] != trustpolicy.ActionEnforce {
		return nil, fetch.Errorf(fetch.Refused, "the statement %s of the trust policy has a level that accepts any "+
			"signature, or none: use strict or permissive, and do not override authenticity", fetch.Quote(statement.Name))
	}
	return statement, nil
}

// listed returns the manifests of signatures, in the order of their digests.
func listed(ctx context.Context, s image.Subject, attempts *verify.Attempts) ([]v1.Descriptor, error) {
	found, err := s.Registry.Referrers(ctx, s.Digest, registry.ArtifactTypeNotation)
	if err != nil {
		return nil, err
	}
	found = slices.Clone(found)
	slices.SortFunc(found, func(a, b v1.Descriptor) int { return cmp.Compare(a.Digest.String(), b.Digest.String()) })
	attempts.Skipped(len(found) - verify.Candidates)
	return found[:min(len(found), verify.Candidates)], nil
}

// envelope reads the signature that a manifest holds. Errors for which verify.Interrupts is false are about this
// signature only.
func envelope(ctx context.Context, registry image.Registry, d v1.Descriptor) (data []byte, mediaType string, err error) {
	if d.Size > verify.ManifestBytes {
		return nil, "", fetch.Errorf(fetch.LimitExceeded, "its manifest has %d bytes: %d are the limit", d.Size, verify.ManifestBytes)
	}
	raw, _, err := registry.Manifest(ctx, d.Digest.String())
	if err != nil {
		return nil, "", err
	}
	var manifest struct {
		Layers []v1.Descriptor `json:"layers"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil || len(manifest.Layers) != 1 {
		return nil, "", fetch.Errorf(fetch.InvalidContent, "its manifest does not hold exactly one signature")
	}
	data, err = registry.Blob(ctx, manifest.Layers[0], verify.DocumentBytes)
	return data, string(manifest.Layers[0].MediaType), err
}

// accept verifies one signature, and says for people who made it.
func (v *Verifier) accept(ctx context.Context, s image.Subject, reference string, data []byte, mediaType string) (string, error) {
	var outcome *upstream.VerificationOutcome
	err := verify.Guard(func() (err error) {
		if err = checkEnvelope(mediaType, data); err != nil {
			return err
		}
		outcome, err = v.verifier.Verify(ctx,
			ocispec.Descriptor{MediaType: s.MediaType, Digest: digests.Digest(s.Digest.String()), Size: s.Size}, data,
			upstream.VerifierVerifyOptions{ArtifactReference: reference, SignatureMediaType: mediaType})
		return err
	})
	if err != nil {
		return "", err
	}
	if outcome == nil || outcome.Error != nil || outcome.EnvelopeContent == nil || len(outcome.EnvelopeContent.SignerInfo.CertificateChain) == 0 {
		return "", errors.New("it names no signer")
	}
	return verify.Text("notation " + outcome.EnvelopeContent.SignerInfo.CertificateChain[0].Subject.String()), nil
}
