// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/tagversion"
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

// parseReference reads an image reference. Its repository is on the server that is contacted, in the form of package endpoint.
func parseReference(text string, insecure bool) (name.Reference, error) {
	if len(text) > maxReference {
		return nil, malformed(text)
	}
	ref, err := name.ParseReference(text, name.WeakValidation)
	if err != nil {
		return nil, malformed(text)
	}
	repository, err := canonical(ref.Context(), insecure)
	if err != nil {
		return nil, malformed(text)
	}
	if digest, ok := ref.(name.Digest); ok {
		_, err := fetch.ParseDigest(digest.DigestStr())
		return repository.Digest(digest.DigestStr()), fetch.Describe(err, "image %s", text)
	}
	if !tagText.MatchString(ref.Identifier()) {
		return nil, malformed(text)
	}
	return repository.Tag(ref.Identifier()), nil
}

// parseRepository reads an image reference that has neither tag nor digest.
func parseRepository(text string, insecure bool) (name.Repository, error) {
	if len(text) > maxReference {
		return name.Repository{}, malformed(text)
	}
	repository, err := name.NewRepository(text, name.WeakValidation)
	if err == nil {
		if repository, err = canonical(repository, insecure); err == nil {
			return repository, nil
		}
	}
	if _, err := parseReference(text, insecure); err != nil {
		return name.Repository{}, err
	}
	return name.Repository{}, fetch.Errorf(fetch.Refused,
		"image %s: it has a tag or digest and semver besides: remove one of the two", text)
}

// canonical returns a repository on the server that is contacted for it: policies decide by the parts of this name, and URLs
// are built from it.
func canonical(repository name.Repository, insecure bool) (name.Repository, error) {
	path := repository.RepositoryStr()
	if !HostText.MatchString(repository.RegistryStr()) || !RepositoryText.MatchString(path) {
		return repository, errors.New("the host or the path is malformed")
	}
	server, err := serverOf(repository, insecure)
	if err != nil {
		return repository, err
	}
	path = server.Repository(path)
	if server.IsDockerHub() {
		server.Host = name.DefaultRegistry
	}
	shown := server
	if strings.ContainsAny(server.Host, ".:") { // other names are taken for hosts only with a port
		shown = server.Without(defaultPort(insecure))
	}
	registry, err := name.NewRegistry(shown.String(), name.WeakValidation)
	return registry.Repo(path), err
}

// serverOf returns the server of a repository with its port.
func serverOf(repository name.Repository, insecure bool) (endpoint.Server, error) {
	server, err := endpoint.Parse(repository.RegistryStr())
	if server.Port == 0 {
		server.Port = defaultPort(insecure)
	}
	return server, err
}

// defaultPort is the port of the scheme by which a registry is contacted.
func defaultPort(insecure bool) uint16 {
	if insecure {
		return endpoint.HTTP
	}
	return endpoint.HTTPS
}

// Host returns the server of the registry that a reference names, as it stands in the URLs that are contacted.
func Host(text string, insecure bool) (string, error) {
	ref, err := parseReference(text, insecure)
	if err != nil {
		return "", err
	}
	return ref.Context().RegistryStr(), nil
}

// FullName returns the full name of the repository of a reference, without tag and digest, by which policies decide:
// docker.io/library/nginx for nginx. References that lead to the same address and port by their spelling have the same full name. The
// ports 443 and 80 are left out.
func FullName(text string, insecure bool) (string, error) {
	ref, err := parseReference(text, insecure)
	if err != nil {
		return "", err
	}
	server, err := serverOf(ref.Context(), insecure)
	if err != nil {
		return "", malformed(text)
	}
	return server.Registry() + "/" + ref.Context().RepositoryStr(), nil
}

func malformed(text string) error {
	return fetch.Errorf(fetch.Refused,
		"image %s: not an image reference: write host/repository:tag or host/repository@sha256:<hex>%s", fetch.Quote(text), tagversion.Hint(text))
}
