// SPDX-License-Identifier: Apache-2.0

package image

import (
	"regexp"
	"slices"
	"strings"

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

// hubHosts are the names of Docker Hub's registry.
var hubHosts = []string{"docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// FullName returns the full name of the repository of a reference, without tag and digest, in the one spelling that policies
// compare: docker.io/library/nginx for nginx. Names of one registry that differ in letter case, in a dot at the end of the
// host, or by the default port have the same full name; the default port of an insecure reference is 80.
func FullName(text string, insecure bool) (string, error) {
	ref, err := parseReference(text)
	if err != nil {
		return "", err
	}
	host := strings.ToLower(ref.Context().RegistryStr())
	port := ":443"
	if insecure {
		port = ":80"
	}
	host = strings.TrimRight(strings.TrimSuffix(host, port), ".")
	if name, rest, found := strings.Cut(host, ":"); found && !strings.HasPrefix(host, "[") {
		host = strings.TrimRight(name, ".") + ":" + rest
	}
	repository := ref.Context().RepositoryStr()
	if slices.Contains(hubHosts, host) {
		host = "docker.io"
		if !strings.Contains(repository, "/") {
			repository = "library/" + repository
		}
	}
	return host + "/" + repository, nil
}

func wellFormed(repository name.Repository) bool {
	return HostText.MatchString(repository.RegistryStr()) && RepositoryText.MatchString(repository.RepositoryStr())
}

func malformed(text string) error {
	return fetch.Errorf(fetch.Refused,
		"image %s: not an image reference: write host/repository:tag or host/repository@sha256:<hex>", fetch.Quote(text))
}
