// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"strings"

	"github.com/satchel-dev/satchel/internal/endpoint"
)

// FullPrefix returns a prefix in the form of full names.
func FullPrefix(prefix string) string {
	server, path, err := split(prefix)
	if err != nil {
		return prefix // the CRD refuses it, and no image has such a name
	}
	return joined(server.Registry(), path)
}

// fullName returns the place of a mirror for an image in the form of full names.
func fullName(place string) string {
	server, path, err := split(place)
	if err != nil {
		return place
	}
	return joined(server.Registry(), server.Repository(path))
}

func split(place string) (endpoint.Server, string, error) {
	host, path, _ := strings.Cut(place, "/")
	server, err := endpoint.Parse(host)
	return server, path, err
}

func joined(host, path string) string {
	if path == "" {
		return host
	}
	return host + "/" + path
}

// Permits tells whether the login of a rule may be sent to a repository of a registry, a host with its port: only below the
// prefix and the mirrors of the rule. Without a repository it is about the host alone.
func (r Rule) Permits(host, repository string) bool {
	asked := FullPrefix(joined(host, repository))
	for _, scope := range append([]string{r.Prefix}, r.ImageRule.Mirrors...) {
		scope = FullPrefix(scope)
		if repository == "" {
			scope, _, _ = strings.Cut(scope, "/")
		}
		if scope != "" && within(scope, asked) {
			return true
		}
	}
	return false
}
