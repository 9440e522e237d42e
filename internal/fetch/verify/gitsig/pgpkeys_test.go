// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"bytes"
	"crypto/rsa"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// TestM33PGPKeys: what would take long to compute with is refused while it is parsed.
func TestM33PGPKeys(t *testing.T) {
	entity := pgpKeyOf(t, 1)
	var whole bytes.Buffer
	if err := entity.Serialize(&whole); err != nil {
		t.Fatal(err)
	}
	packets := packetsOf(t, whole.Bytes()) // the key, a user ID and its signature
	signature := packets[len(packets)-1]
	public := func(bits uint, exponent int) []byte {
		modulus := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1))
		var out bytes.Buffer
		if err := packet.NewRSAPublicKey(time.Unix(1700000000, 0), &rsa.PublicKey{N: modulus, E: exponent}).Serialize(&out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	subkey := bytes.Clone(public(16384, 65537))
	subkey[0] = subkey[0]&0xc0 | publicSubkeyTag
	long := serialized(t, &packet.OpaquePacket{Tag: signatureTag, Contents: make([]byte, maxSignatureBytes+1)})
	for name, tc := range map[string]struct {
		reason string
		raw    []byte
		want   string // "" for accepted
	}{
		"Good":       {"as gpg exports it", whole.Bytes(), ""},
		"Most":       {"signed again each year, with several names", append(bytes.Clone(whole.Bytes()), bytes.Repeat(signature, maxOwnSignatures-1)...), ""},
		"Signatures": {"85 of itself", append(bytes.Clone(whole.Bytes()), bytes.Repeat(signature, 84)...), "more than 64 signatures by itself"},
		"Modulus":    {"65,528 bits", append(append(public(65528, 1<<24-1), packets[1]...), bytes.Repeat(signature, 85)...), "65528 bits"},
		"Exponent":   {"e = 2^24-1", append(public(4096, 1<<24-1), whole.Bytes()...), "exponent 16777215"},
		"Subkey":     {"the binding of a subkey may be computed with the subkey", append(bytes.Clone(whole.Bytes()), subkey...), "16384 bits"},
		"Subkeys":    {"each costs", append(bytes.Clone(whole.Bytes()), bytes.Repeat(serialized(t, &packet.OpaquePacket{Tag: publicSubkeyTag, Contents: []byte{9}}), maxSubkeys+1)...), "more than 32 subkeys"},
		"Subpackets": {"a signature of any size", append(bytes.Clone(whole.Bytes()), long...), "signature of 16385 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := ParseKeys(map[string][]byte{"a.gpg": tc.raw})
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s: it took %v", tc.reason, took)
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// packetsOf takes a key ring apart.
func packetsOf(t *testing.T, raw []byte) [][]byte {
	t.Helper()
	var all [][]byte
	for packets := packet.NewOpaqueReader(bytes.NewReader(raw)); ; {
		one, err := packets.Next()
		if err == io.EOF { //nolint:errorlint // it returns io.EOF itself
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, serialized(t, one))
	}
}

func serialized(t *testing.T, one *packet.OpaquePacket) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := one.Serialize(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
