// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import "strings"

// dockerHub is the host of Docker Hub in full names.
const dockerHub = "docker.io"

// hubNames are other names of Docker Hub's registry.
var hubNames = map[string]bool{"index.docker.io": true, "registry-1.docker.io": true, "registry.hub.docker.com": true}

// FullPrefix returns a prefix, or the place of a mirror, in the spelling of full names.
func FullPrefix(prefix string) string { return spelled(prefix, ":443") }

// spelled returns a place in the spelling of full names, without these ports.
func spelled(place string, ports ...string) string {
	host, path, found := strings.Cut(place, "/")
	for _, port := range ports {
		host = strings.TrimSuffix(host, port)
	}
	if hubNames[host] {
		host = dockerHub
	}
	if !found {
		return host
	}
	return host + "/" + path
}

// Permits tells whether the login of a rule may be sent to a repository of a registry, a host with its port: only below the
// prefix and the mirrors of the rule. Without a repository it is about the host alone.
func (r Rule) Permits(host, repository string) bool {
	asked := FullPrefix(strings.TrimSuffix(host+"/"+repository, "/"))
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
