// SPDX-License-Identifier: Apache-2.0

package image

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/tlsfault"
)

// TestTLSHints: a message about TLS names the field that helps.
func TestTLSHints(t *testing.T) {
	for _, tt := range []struct{ host, cause, hint string }{
		{tlsfault.Plain(t), "the server speaks HTTP without TLS", "set insecure to use plain HTTP"},
		{tlsfault.Untrusted(t), "the server's certificate is not trusted", "ca.crt in certSecretRef"},
	} {
		f, err := New(Options{Ref: tt.host + "/b:v1", Client: client(), Limits: fetch.DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Resolve(t.Context())
		if fetch.ReasonOf(err) != fetch.Unreachable || !strings.Contains(err.Error(), tt.cause) || !strings.Contains(err.Error(), tt.hint) {
			t.Errorf("%s: %v", tt.host, err)
		}
	}
}
