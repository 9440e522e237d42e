// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"

	"github.com/satchel-dev/satchel/internal/endpoint"
)

// Access is what one source brings along to reach its servers. The zero value brings nothing.
type Access struct {
	// Server is the host that gets Certificate, with the port unless it is 443.
	Server string
	// Certificate is presented to Server when it asks for one, and to no other server.
	Certificate *tls.Certificate
	// Roots are trusted instead of the system's; SystemRoots returns both.
	Roots *x509.CertPool
	// Proxy is what all connections go through, "http://host:port" with user and password where it wants them. Its
	// address is subject to the policy; those behind it are found by the proxy, so that of them only addresses that
	// stand in a URL are.
	Proxy *url.URL
}

// SystemRoots returns the system's certificate authorities and those of a PEM file; false when it holds none.
func SystemRoots(pem []byte) (*x509.CertPool, bool) {
	pool, err := x509.SystemCertPool()
	if err != nil { // a system without any
		pool = x509.NewCertPool()
	}
	return pool, pool.AppendCertsFromPEM(pem)
}

// tls returns the settings for a connection to any server, or to Server.
func (a Access) tls(own bool) *tls.Config {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.Roots}
	if own && a.Certificate != nil {
		settings.Certificates = []tls.Certificate{*a.Certificate}
	}
	return settings
}

// transports chooses the transport by the server of a request.
type transports struct {
	server   endpoint.Server // the zero value for none
	own, any http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transports) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.server.Host != "" && request.URL.Scheme == "https" && isServer(request.URL, t.server) {
		return t.own.RoundTrip(request)
	}
	return t.any.RoundTrip(request)
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (t transports) CloseIdleConnections() {
	for _, each := range []http.RoundTripper{t.own, t.any} {
		if closer, ok := each.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
		}
	}
}

// isServer tells whether a URL leads to a server.
func isServer(u *url.URL, server endpoint.Server) bool {
	at, err := endpoint.OfURL(u)
	return err == nil && at == server
}
