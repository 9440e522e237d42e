// SPDX-License-Identifier: Apache-2.0

// Package egress knows which servers of the cluster itself no tenant may have a
// controller connect to.
package egress

import (
	"net"
	"net/url"
	"strconv"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// kubernetesService is the API server's Service.
const kubernetesService = "kubernetes.default.svc"

// APIServers are the ways to the API server, which no source or kubeconfig may take: the
// one that this process goes, a URL, the one that its Pod was told of, an address, and
// its Service. On loopback, where it may be in tests, only its port is meant.
func APIServers(host, service string) []fetch.Server {
	const what = "the Kubernetes API server"
	servers := []fetch.Server{{What: what, Host: kubernetesService}}
	if parsed, err := url.Parse(host); err == nil && parsed.Hostname() != "" {
		servers = append(servers, fetch.Server{What: what, Host: parsed.Hostname(), Port: portOf(parsed.Port())})
	}
	if service != "" {
		servers = append(servers, fetch.Server{What: what, Host: service})
	}
	return servers
}

// ArtifactServer is the way to the artifacts of this installation: the host under which
// they are advertised, perhaps with a port, and the address on which they are served.
func ArtifactServer(advertised, listen string) []fetch.Server {
	const what = "Satchel's artifact server"
	own := fetch.Server{What: what, Host: advertised, Shared: true}
	if host, port, err := net.SplitHostPort(advertised); err == nil {
		own.Host, own.Port = host, portOf(port)
	}
	return append([]fetch.Server{own}, listening(what, listen)...)
}

// UploadServer is where uploads are taken in, an address; "" for nowhere.
func UploadServer(listen string) []fetch.Server { return listening("Satchel's upload server", listen) }

// listening is a server that listens on an address of this process's own.
func listening(what, listen string) []fetch.Server {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || portOf(port) == 0 {
		return nil
	}
	if net.ParseIP(host).IsUnspecified() {
		host = ""
	}
	return []fetch.Server{{What: what, Host: host, Port: portOf(port)}}
}

// portOf reads a port; 0 for none.
func portOf(text string) uint16 {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(port)
}
