// SPDX-License-Identifier: Apache-2.0

// Package trust finds out which trust settings a source has, whether they changed since its content was accepted, and whether
// they accept it still, by the signature that was kept. BundleSources and BundleCatalogs share it.
package trust

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// Demands returns the settings by which the spec of a source accepts signatures, and the Secrets with its keys; nil if it
// requires none.
func Demands(source v1alpha1.Source) (demand any, from []*v1alpha1.LocalReference) {
	switch {
	case source.Image != nil && source.Image.Verify != nil:
		return imageDemand(source.Image.Verify)
	case source.Git != nil && source.Git.Verify != nil:
		v := source.Git.Verify
		return v, []*v1alpha1.LocalReference{&v.SecretRef}
	case source.HTTP != nil && source.HTTP.Verify != nil:
		v := source.HTTP.Verify
		return v, []*v1alpha1.LocalReference{v.SecretRef, v.TrustedRootSecretRef}
	}
	return nil, nil
}

func imageDemand(v *v1alpha1.ImageVerification) (demand any, from []*v1alpha1.LocalReference) {
	return v, []*v1alpha1.LocalReference{v.SecretRef, v.TrustedRootSecretRef}
}

// Settings are the trust settings of one source: of its spec, and of the policies that count for its image.
type Settings struct {
	Source   v1alpha1.Source
	Secrets  *credentials.Secrets
	Policies []sourcefetch.Demand
}

// Of returns the trust settings of a source.
func Of(source v1alpha1.Source, secrets *credentials.Secrets, adapters *sourcefetch.Adapters) Settings {
	return Settings{source, secrets, adapters.Demands(source)}
}

// Demanded tells whether a signature is required of one of the sources.
func Demanded(sources []v1alpha1.Source, adapters *sourcefetch.Adapters) bool {
	return slices.ContainsFunc(sources, func(source v1alpha1.Source) bool {
		own, _ := Demands(source)
		return own != nil || len(adapters.Demands(source)) > 0
	})
}

// each calls do with every demand, its Secrets, and who reads them.
func (s Settings) each(do func(demand any, from []*v1alpha1.LocalReference, secrets *credentials.Secrets) error) error {
	if demand, from := Demands(s.Source); demand != nil {
		if err := do(demand, from, s.Secrets); err != nil {
			return err
		}
	}
	for _, policy := range s.Policies {
		demand, from := imageDemand(policy.Verify)
		if err := do(demand, from, policy.Secrets); err != nil {
			return err
		}
	}
	return nil
}

// Digest identifies the settings and the versions of their Secrets, as far as these were read; "" if no signature is required.
func (s Settings) Digest() string {
	hash, demanded := sha256.New(), false
	_ = s.each(func(demand any, from []*v1alpha1.LocalReference, secrets *credentials.Secrets) error {
		demanded = true
		_ = json.NewEncoder(hash).Encode(demand) // plain structs can be encoded, and writes to a hash do not fail
		for _, ref := range from {
			if ref != nil {
				fmt.Fprintln(hash, ref.Name, secrets.Version(ref.Name))
			}
		}
		return nil
	})
	if !demanded {
		return ""
	}
	return digest.NewDigest(digest.SHA256, hash).String()
}

// Current returns Digest after the Secrets were read.
func (s Settings) Current(ctx context.Context) (string, error) {
	err := s.each(func(_ any, from []*v1alpha1.LocalReference, secrets *credentials.Secrets) error {
		for _, ref := range from {
			if ref == nil {
				continue
			}
			if _, err := secrets.Find(ctx, ref.Name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return s.Digest(), nil
}

// Seen returns the versions of the Secrets with the trust of the sources, as far as these were read.
func Seen(sources []v1alpha1.Source, secrets *credentials.Secrets, adapters *sourcefetch.Adapters) credentials.Seen {
	found := credentials.Seen{}
	for _, source := range sources {
		_ = Of(source, secrets, adapters).each(func(_ any, from []*v1alpha1.LocalReference, secrets *credentials.Secrets) error {
			for _, ref := range from {
				if ref != nil {
					secrets.CopySeen(ref.Name, found)
				}
			}
			return nil
		})
	}
	return found
}

// KeptSignature is the signature by which one part of what is published was accepted, as stored.
type KeptSignature struct {
	Destination string `json:"destination"`
	Digest      string `json:"digest"`
	Signature   string `json:"signature"`
}

// VerifyKept returns the signer of the published content of one source, by the current trust settings and the kept signatures, which
// are a list of KeptSignature in JSON. The record is the entry of the source in the status; nil if there is none.
func VerifyKept(ctx context.Context, adapters *sourcefetch.Adapters, source v1alpha1.Source, record *v1alpha1.ResolvedSource, signatures func() ([]byte, error)) (by string, err error) {
	verify, err := adapters.KeptVerifier(ctx, source)
	if err != nil {
		return "", err
	}
	if record == nil || record.Trust == "" {
		return "", errors.New("no signature was required when it was fetched")
	}
	content, err := signatures()
	if err != nil {
		return "", err
	}
	var kept []KeptSignature
	if len(content) > 0 && json.Unmarshal(content, &kept) != nil {
		return "", errors.New("the kept signature cannot be read")
	}
	for _, k := range kept {
		if k.Destination == source.Destination && k.Digest == record.Digest {
			return verify(ctx, record.Digest, k.Signature)
		}
	}
	return "", errors.New("its signature was not kept")
}
