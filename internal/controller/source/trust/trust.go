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

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// Demands returns the verification settings of a source, with the Secrets that hold its
// trust; nil for none.
func Demands(source v1alpha1.Source) (demand any, from []*v1alpha1.LocalReference) {
	switch {
	case source.Image != nil && source.Image.Verify != nil:
		v := source.Image.Verify
		return v, []*v1alpha1.LocalReference{v.SecretRef, v.TrustedRootSecretRef}
	case source.Git != nil && source.Git.Verify != nil:
		v := source.Git.Verify
		return v, []*v1alpha1.LocalReference{&v.SecretRef}
	case source.HTTP != nil && source.HTTP.Verify != nil:
		v := source.HTTP.Verify
		return v, []*v1alpha1.LocalReference{v.SecretRef, v.TrustedRootSecretRef}
	}
	return nil, nil
}

// Digest identifies the trust settings of a source: the verification settings and
// the versions of the Secrets that were read. It does not reveal their contents. It is "" if no
// signature is required.
func Digest(source v1alpha1.Source, secrets *credentials.Secrets) string {
	demand, from := Demands(source)
	if demand == nil {
		return ""
	}
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode(demand) // plain structs can be encoded, and writes to a hash do not fail
	for _, ref := range from {
		if ref != nil {
			fmt.Fprintln(hash, ref.Name, secrets.Seen[credentials.SeenObject{Kind: "Secret", Name: ref.Name}])
		}
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil))
}

// Current is Digest after the Secrets with the trust were read.
func Current(ctx context.Context, source v1alpha1.Source, secrets *credentials.Secrets) (string, error) {
	_, from := Demands(source)
	for _, ref := range from {
		if ref == nil {
			continue
		}
		if _, err := secrets.Find(ctx, ref.Name); err != nil {
			return "", err
		}
	}
	return Digest(source, secrets), nil
}

// Seen are the Secrets with the trust of sources that were read.
func Seen(sources []v1alpha1.Source, secrets *credentials.Secrets) credentials.Seen {
	found := credentials.Seen{}
	for _, source := range sources {
		_, from := Demands(source)
		for _, ref := range from {
			if ref == nil {
				continue
			}
			object := credentials.SeenObject{Kind: "Secret", Name: ref.Name}
			if version, known := secrets.Seen[object]; known {
				found[object] = version
			}
		}
	}
	return found
}

// KeptSignature is the signature by which one part of what is published was accepted, as stored.
type KeptSignature struct {
	Destination string `json:"destination"`
	Digest      string `json:"digest"`
	Signature   string `json:"signature"`
}

// Judge returns the signer of the published content of one source, by the current trust settings and the kept signatures, which
// are a list of KeptSignature in JSON. The record is the entry of the source in the status; nil if there is none.
func Judge(ctx context.Context, adapters *sourcefetch.Adapters, source v1alpha1.Source, record *v1alpha1.ResolvedSource, signatures func() ([]byte, error)) (by string, err error) {
	judge, err := adapters.Judge(ctx, source)
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
			return judge(ctx, record.Digest, k.Signature)
		}
	}
	return "", errors.New("its signature was not kept")
}
