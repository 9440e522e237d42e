// SPDX-License-Identifier: Apache-2.0

package certificate

import "testing"

func TestSameSigner(t *testing.T) {
	secret := func(pairs ...string) map[string][]byte {
		data := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			data[pairs[i]] = []byte(pairs[i+1])
		}
		return data
	}
	desired := secret(certFile, "b", keyFile, "key of b", trustFile, "a b")
	cases := map[string]struct {
		reason string
		live   map[string][]byte
		want   bool
	}{
		"the same":       {"only what is trusted changed", secret(certFile, "b", keyFile, "key of b", trustFile, "b"), true},
		"with successor": {"the successor is another matter", secret(certFile, "b", keyFile, "key of b", nextCert, "c", nextKey, "key of c"), true},
		"the successor":  {"it takes over", secret(certFile, "a", keyFile, "key of a", nextCert, "b", nextKey, "key of b"), true},
		"another":        {"somebody put it there", secret(certFile, "a", keyFile, "key of a"), false},
		"another key":    {"somebody put it there", secret(certFile, "b", keyFile, "key of a"), false},
		"mixed":          {"the successor's certificate with the key that signs is no pair", secret(nextCert, "b", keyFile, "key of b"), false},
		"without key":    {"somebody removed it", secret(certFile, "b"), false},
		"empty":          {"nothing signed", secret(), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			id := secretID("shop", "satchel-ca-app")
			if got := SameSigner(newSecret(id, "", opaque, c.live), newSecret(id, "", opaque, desired)); got != c.want {
				t.Errorf("%v, want %v: %s", got, c.want, c.reason)
			}
		})
	}
	if SameSigner(nil, newSecret(secretID("shop", "a"), "", opaque, nil)) {
		t.Error("no live Secret and no authority are taken for the same signer")
	}
}
