// SPDX-License-Identifier: Apache-2.0

// Package tlsfault has servers to which no TLS connection can be made, for tests of the messages.
package tlsfault

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Plain starts a server that speaks HTTP without TLS, and returns its host and port.
func Plain(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// Untrusted starts a server with a certificate that no client trusts, and returns its host and port.
func Untrusted(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it reports each refused handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "https://")
}
