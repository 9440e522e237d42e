// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// maxSecrets is how many distinct Secrets the sources of one object may name. The CRDs refuse more; what an older CRD
// admitted is refused by SourceProblem. The ConfigMaps are fewer than that: each is a source of its own.
const maxSecrets = 20

// SourceInterval is how often moving references are resolved again.
func SourceInterval(spec *v1alpha1.BundleSourceSpec) time.Duration {
	return orDefault(spec.Interval, 10*time.Minute)
}

// SourceTimeout bounds one whole fetch.
func SourceTimeout(spec *v1alpha1.BundleSourceSpec) time.Duration {
	return orDefault(spec.Timeout, time.Minute)
}

// CatalogSource is the part of a catalog's spec that says where its content comes from, as a BundleSource says it.
func CatalogSource(spec *v1alpha1.BundleCatalogSpec) *v1alpha1.BundleSourceSpec {
	from := spec.Source
	return &v1alpha1.BundleSourceSpec{
		Interval: spec.Interval, Timeout: v1alpha1.Duration{Duration: orDefault(spec.Timeout, 5*time.Minute)},
		Suspend: spec.Suspend, ServiceAccountName: spec.ServiceAccountName,
		Sources: []v1alpha1.Source{{Image: from.Image, Git: from.Git, HTTP: from.HTTP, ConfigMap: from.ConfigMap}},
	}
}

// CatalogProblem says what of the spec cannot be read, although it was stored; nil when nothing is wrong.
func CatalogProblem(spec *v1alpha1.BundleCatalogSpec) error {
	return errors.Join(problem("spec.interval", spec.Interval), problem("spec.timeout", spec.Timeout), secretsProblem(CatalogSource(spec)))
}

// CatalogDigest identifies what decides the content of a catalog: equal fields, equal digest.
func CatalogDigest(spec *v1alpha1.BundleCatalogSpec) string {
	encoded, err := json.Marshal(struct {
		Sources []v1alpha1.Source
		Path    string
	}{CatalogSource(spec).Sources, spec.Path})
	if err != nil { // plain structs always encode
		return ""
	}
	return digest.FromBytes(encoded).String()
}

// SourceProblem says what of the spec cannot be read, although it was stored; nil when
// nothing is wrong.
func SourceProblem(spec *v1alpha1.BundleSourceSpec) error {
	return errors.Join(problem("spec.interval", spec.Interval), problem("spec.timeout", spec.Timeout), secretsProblem(spec))
}

func secretsProblem(spec *v1alpha1.BundleSourceSpec) error {
	if count := len(SecretNames(spec)); count > maxSecrets {
		return fmt.Errorf("spec.sources name %d distinct Secrets, and may name %d: use one Secret for several sources, or divide the sources among several BundleSources", count, maxSecrets)
	}
	return nil
}

// SecretNames are the Secrets that the sources name, sorted, each once.
func SecretNames(spec *v1alpha1.BundleSourceSpec) []string {
	var names []string
	add := func(refs ...*v1alpha1.LocalReference) {
		for _, ref := range refs {
			if ref != nil {
				names = append(names, ref.Name)
			}
		}
	}
	for i := range spec.Sources {
		if image := spec.Sources[i].Image; image != nil {
			add(image.SecretRef, image.CertSecretRef, image.ProxySecretRef)
			if image.Verify != nil {
				add(image.Verify.SecretRef, image.Verify.TrustedRootSecretRef)
			}
		}
		if git := spec.Sources[i].Git; git != nil {
			add(git.SecretRef, git.ProxySecretRef)
			if git.Verify != nil {
				add(&git.Verify.SecretRef)
			}
		}
		if http := spec.Sources[i].HTTP; http != nil {
			add(http.SecretRef, http.CertSecretRef, http.ProxySecretRef)
			if http.Verify != nil {
				add(http.Verify.SecretRef, http.Verify.TrustedRootSecretRef)
			}
		}
		if helm := spec.Sources[i].Helm; helm != nil {
			add(helm.SecretRef, helm.CertSecretRef, helm.ProxySecretRef)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// demandsSignature tells whether this source accepts only content with a valid signature.
func demandsSignature(source *v1alpha1.Source) bool {
	return source.Image != nil && source.Image.Verify != nil || source.Git != nil && source.Git.Verify != nil || source.HTTP != nil && source.HTTP.Verify != nil
}

// Identified tells whether the content of a source is identified by a digest or a commit in the spec, or by a signature,
// whatever server it comes from.
func Identified(source *v1alpha1.Source) bool {
	switch {
	case demandsSignature(source):
		return true
	case source.Image != nil:
		return source.Image.Version == "" && strings.Contains(source.Image.Reference, "@")
	case source.Git != nil:
		return source.Git.Ref != nil && source.Git.Ref.Commit != ""
	case source.HTTP != nil:
		return source.HTTP.Digest != ""
	case source.Helm != nil:
		return source.Helm.Digest != ""
	}
	return source.Upload != nil
}

// DemandsSignature tells whether one of the sources does.
func DemandsSignature(spec *v1alpha1.BundleSourceSpec) bool {
	return slices.ContainsFunc(spec.Sources, func(s v1alpha1.Source) bool { return demandsSignature(&s) })
}

// UnverifiedParts describes the sources of which no signature is demanded, such as
// "the configMap of destination extras".
func UnverifiedParts(spec *v1alpha1.BundleSourceSpec) []string {
	var parts []string
	for i := range spec.Sources {
		part := &spec.Sources[i]
		if demandsSignature(part) {
			continue
		}
		text := "the " + KindOf(part)
		if part.Destination != "" {
			text += " of destination " + part.Destination
		}
		parts = append(parts, text)
	}
	return parts
}

// KindOf is the JSON name of the field that is set.
func KindOf(source *v1alpha1.Source) string {
	switch {
	case source.Image != nil:
		return "image"
	case source.Git != nil:
		return "git"
	case source.HTTP != nil:
		return "http"
	case source.Helm != nil:
		return "helm"
	case source.ConfigMap != nil:
		return "configMap"
	default:
		return "upload"
	}
}

// SourcesDigest identifies what decides the content of the artifact, the sources
// and what is left out of them: equal fields, equal digest.
func SourcesDigest(spec *v1alpha1.BundleSourceSpec) string {
	encoded, err := json.Marshal(spec.Sources)
	if err != nil { // a slice of plain structs always encodes
		return ""
	}
	if spec.Ignore != "" {
		encoded = append(append(encoded, 0), spec.Ignore...)
	}
	return digest.FromBytes(encoded).String()
}

// UploadDigest is the digest of the content that has to be uploaded; empty where the
// sources are of other kinds.
func UploadDigest(spec *v1alpha1.BundleSourceSpec) string {
	for _, source := range spec.Sources {
		if source.Upload != nil {
			return source.Upload.Digest
		}
	}
	return ""
}
