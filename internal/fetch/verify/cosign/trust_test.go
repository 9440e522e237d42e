// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func pemOf(t *testing.T, kind string, public any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// TestM14KeySecrets: what cannot be read is refused although another key would verify the image.
func TestM14KeySecrets(t *testing.T) {
	right := ecdsaKey(t).pem(t)
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // it has to be refused
	if err != nil {
		t.Skipf("this Go makes no key that is too short: %v", err)
	}
	odd, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	oddKey, err := x509.MarshalPKIXPublicKey(odd.Public())
	if err != nil {
		t.Fatal(err)
	}
	canary := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("CANARY-secret")})
	many := map[string][]byte{}
	for i := range 65 {
		many[fmt.Sprintf("%02d.pub", i)] = right
	}
	cases := map[string]struct {
		reason  string
		entries map[string][]byte
		want    string
	}{
		"Missing":       {"no Secret", nil, "nothing to verify with"},
		"Empty":         {"an empty Secret", map[string][]byte{}, "nothing to verify with"},
		"OnlyOthers":    {"no key in it", map[string][]byte{"cosign.key": canary, "cosign.password": []byte("CANARY")}, "nothing to verify with"},
		"EmptyFirst":    {"an empty entry, and one that would do", map[string][]byte{"a.pub": {}, "b.pub": right}, `"a.pub"`},
		"MalformedLast": {"one that would do, and a malformed one", map[string][]byte{"a.pub": right, "b.pub": []byte("CANARY")}, `"b.pub"`},
		"MalformedOne":  {"a malformed one, and one that would do", map[string][]byte{"a.pub": []byte("CANARY"), "b.pub": right}, `"a.pub"`},
		"Damaged":       {"the PEM is cut", map[string][]byte{"a.pub": right[:len(right)-20], "b.pub": right}, `"a.pub"`},
		"NotDER":        {"PEM around nonsense", map[string][]byte{"a.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("CANARY")})}, "cannot be read"},
		"Private":       {"the private key by mistake", map[string][]byte{"a.pub": canary, "b.pub": right}, `"a.pub" is not a public key: its PEM block`},
		"Certificate":   {"a certificate by mistake", map[string][]byte{"a.pub": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})}, "has to be of the type PUBLIC KEY"},
		"TwoInOne":      {"the second one would be overlooked", map[string][]byte{"a.pub": append(bytes.Clone(right), right...)}, "each key an entry of its own"},
		"TextBefore":    {"not only a key", map[string][]byte{"a.pub": append([]byte("key: "), right...)}, "has to be PEM"},
		"ShortRSA":      {"too short", map[string][]byte{"a.pub": pemOf(t, "PUBLIC KEY", small.Public())}, "1024 bits"},
		"OddCurve":      {"too short", map[string][]byte{"a.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: oddKey})}, "curve"},
		"Long":          {"too long", map[string][]byte{"a.pub": append(bytes.Clone(right), strings.Repeat("\n", 2<<20)...)}, "too long"},
		"Many":          {"too many", many, "65 keys"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Keys: tc.entries})
			if fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := New(Options{Keys: map[string][]byte{"cosign.key": canary, "cosign.pub": append([]byte("\n"), right...)}}); err != nil {
		t.Errorf("what cosign generates: %v", err)
	}
	if _, err := New(Options{Keys: map[string][]byte{"a.pub": right}, TrustedRoot: []byte("{}")}); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("a trusted root that cannot be read is refused with keys as well: %v", err)
	}
}
