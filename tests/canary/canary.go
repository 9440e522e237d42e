// SPDX-License-Identifier: Apache-2.0

// Package canary is a server for tests of what must not be reached.
package canary

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// Serve starts a server on 127.0.0.1. A connection to it fails the test.
func Serve(t *testing.T) *httptest.Server {
	t.Helper()
	var hits atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			hits.Add(1)
		}
	}
	server.Start()
	t.Cleanup(func() {
		server.Close()
		if n := hits.Load(); n > 0 {
			t.Errorf("%d connections reached the canary", n)
		}
	})
	return server
}
