// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"slices"
	"strings"
)

// DockerHub is the host of Docker Hub in names of images.
const DockerHub = "docker.io"

// hubHosts are all names of Docker Hub's registry.
var hubHosts = []string{DockerHub, "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// IsDockerHub tells whether a server is Docker Hub's registry.
func (s Server) IsDockerHub() bool {
	return s.Without(HTTPS, HTTP).Port == 0 && slices.Contains(hubHosts, s.Host)
}

// Registry returns the name of a registry by which rules about images are compared: without the ports 443 and 80, of which the
// scheme chooses one, and docker.io for all names of Docker Hub.
func (s Server) Registry() string {
	if s.IsDockerHub() {
		return DockerHub
	}
	return s.Without(HTTPS, HTTP).String()
}

// Repository returns the path of a repository on a registry: Docker Hub has those without a folder in "library".
func (s Server) Repository(path string) string {
	if s.IsDockerHub() && path != "" && !strings.Contains(path, "/") {
		return "library/" + path
	}
	return path
}
