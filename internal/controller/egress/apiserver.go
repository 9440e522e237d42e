// SPDX-License-Identifier: Apache-2.0

// Package egress lists the servers of the cluster itself to which tenants may not make
// a controller connect.
package egress

import (
	"net"
	"net/url"
	"strconv"

	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

// kubernetesService is the API server's Service.
const kubernetesService = "kubernetes.default.svc"

// APIServers are the addresses of the API server, which no source or kubeconfig may use:
// the URL that this process uses, the address in the environment of its Pod, and the
// Service. On loopback, as in tests, only its port is protected.
func APIServers(host, service string) []guard.Server {
	const what = "the Kubernetes API server"
	servers := []guard.Server{{What: what, Host: kubernetesService}}
	if parsed, err := url.Parse(host); err == nil && parsed.Hostname() != "" {
		servers = append(servers, guard.Server{What: what, Host: parsed.Hostname(), Port: portOf(parsed.Port())})
	}
	if service != "" {
		servers = append(servers, guard.Server{What: what, Host: service})
	}
	return servers
}

// ArtifactServer are the addresses of this installation's artifacts: the advertised
// host, optionally with a port, and the listen address.
func ArtifactServer(advertised, listen string) []guard.Server {
	const what = "Satchel's artifact server"
	own := guard.Server{What: what, Host: advertised, Shared: true}
	if host, port, err := net.SplitHostPort(advertised); err == nil {
		own.Host, own.Port = host, portOf(port)
	}
	return append([]guard.Server{own}, listening(what, listen)...)
}

// UploadServer is the address of the upload server; "" for none.
func UploadServer(listen string) []guard.Server { return listening("Satchel's upload server", listen) }

// listening is a server that listens on a local address.
func listening(what, listen string) []guard.Server {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || portOf(port) == 0 {
		return nil
	}
	if net.ParseIP(host).IsUnspecified() {
		host = ""
	}
	return []guard.Server{{What: what, Host: host, Port: portOf(port)}}
}

// portOf reads a port; 0 for none.
func portOf(text string) uint16 {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(port)
}
