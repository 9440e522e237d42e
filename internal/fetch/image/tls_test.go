// SPDX-License-Identifier: Apache-2.0

package image

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// TestTLSHints: a message about TLS names the field that helps.
func TestTLSHints(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	for _, tt := range []struct{ url, cause, hint string }{
		{plain.URL, "the server speaks HTTP without TLS", "set insecure to use plain HTTP"},
		{untrusted.URL, "the server's certificate is not trusted", "ca.crt in certSecretRef"},
	} {
		host := strings.TrimPrefix(strings.TrimPrefix(tt.url, "https://"), "http://")
		f, err := New(Options{Ref: host + "/b:v1", Client: client(), Limits: fetch.DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Resolve(t.Context())
		if fetch.ReasonOf(err) != fetch.Unreachable || !strings.Contains(err.Error(), tt.cause) || !strings.Contains(err.Error(), tt.hint) {
			t.Errorf("%s: %v", tt.url, err)
		}
	}
}
