// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// trust is a Secret with a policy that has one statement.
func trust(t testing.TB, policy []byte, certificates map[string][]byte) *Verifier {
	t.Helper()
	v, err := New(Options{Policy: policy, Certificates: certificates, Client: client(t)})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSmoke(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	for form, mediaType := range envelopes {
		for _, api := range []bool{true, false} {
			r := newRepository(t, api)
			ref := r.image(t)
			acme.issue(t, "Jane", nil).put(t, r, ref, request{mediaType: mediaType})
			by, err := verified(t, ref.String(), trust(t, policy("strict", "*", "*"), map[string][]byte{"ca.crt": acme.pem()}))
			t.Log(form, by, err, fetch.ReasonOf(err))
			by, err = verified(t, ref.String(), trust(t, policy("strict", "*", "*"), map[string][]byte{"ca.crt": newAuthority(t, "x").pem()}))
			t.Log(form, by, err, fetch.ReasonOf(err))
		}
	}
}
