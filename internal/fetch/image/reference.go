// SPDX-License-Identifier: Apache-2.0

package image

import (
	"regexp"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// maxReference bounds a reference: 255 bytes of name, 128 of tag, and a digest.
const maxReference = 640

// The grammar of names is that of the OCI distribution specification and of RFC 3986 hosts. go-containerregistry is
// more liberal: it takes "host/../x" and "oci://host/x".
var (
	HostText       = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
	RepositoryText = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagText        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// parseReference reads an image reference.
func parseReference(text string) (name.Reference, error) {
	if len(text) > maxReference {
		return nil, malformed(text)
	}
	ref, err := name.ParseReference(text, name.WeakValidation)
	if err != nil || !wellFormed(ref.Context()) {
		return nil, malformed(text)
	}
	if digest, ok := ref.(name.Digest); ok {
		_, err := fetch.ParseDigest(digest.DigestStr())
		return ref, fetch.Describe(err, "image %s", text)
	}
	if !tagText.MatchString(ref.Identifier()) {
		return nil, malformed(text)
	}
	return ref, nil
}

// parseRepository reads an image reference that has neither tag nor digest.
func parseRepository(text string) (name.Repository, error) {
	if len(text) > maxReference {
		return name.Repository{}, malformed(text)
	}
	repository, err := name.NewRepository(text, name.WeakValidation)
	if err == nil && wellFormed(repository) {
		return repository, nil
	}
	if _, err := parseReference(text); err != nil {
		return name.Repository{}, err
	}
	return name.Repository{}, fetch.Errorf(fetch.Refused,
		"image %s: it has a tag or digest and semver besides: remove one of the two", text)
}

// Host returns the host of the registry that a reference names, with its port if it has one.
func Host(text string) (string, error) {
	ref, err := parseReference(text)
	if err != nil {
		return "", err
	}
	return ref.Context().RegistryStr(), nil
}

func wellFormed(repository name.Repository) bool {
	return HostText.MatchString(repository.RegistryStr()) && RepositoryText.MatchString(repository.RepositoryStr())
}

func malformed(text string) error {
	return fetch.Errorf(fetch.Refused,
		"image %s: not an image reference: write host/repository:tag or host/repository@sha256:<hex>", fetch.Quote(text))
}
