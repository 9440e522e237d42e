// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"bytes"
	"crypto/dsa" //nolint:staticcheck // old keys have them, and their size is bounded
	"crypto/rsa"
	"errors"
	"fmt"
	"io"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// Tags of packets (RFC 9580, section 5).
const (
	signatureTag    = 2
	secretKeyTag    = 5
	publicKeyTag    = 6
	secretSubkeyTag = 7
	publicSubkeyTag = 14
)

// Limits on PGP keys. The library computes all signatures by which a key binds its parts together, again for each
// commit: a key of 65,528 bits with 85 of them took 73 s.
const (
	// maxOwnSignatures bounds those of one key. Signatures by others are not computed, and may be many.
	maxOwnSignatures = 64
	// maxSubkeys bounds the subkeys of one key.
	maxSubkeys = 32
	// maxSignatureBytes bounds one signature, and so what is in it.
	maxSignatureBytes = 16 << 10
	// maxDSABits bounds the modulus of a DSA key: FIPS 186-4 ends at 3072.
	maxDSABits = 4096
)

// readKeys reads a key ring as gpg exports it without armor. The library passes over keys that it cannot read; here each
// of them counts.
func readKeys(raw []byte) (openpgp.EntityList, error) {
	ring := keyRing{}
	for packets := packet.NewOpaqueReader(bytes.NewReader(raw)); ; {
		one, err := packets.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errNoKey
		}
		if err := ring.add(one); err != nil {
			return nil, err
		}
	}
	found, err := openpgp.ReadKeyRing(bytes.NewReader(raw))
	if err != nil || len(found) == 0 || len(found) != ring.keys {
		return nil, errNoKey
	}
	return found, nil
}

// keyRing judges the packets of a key ring one by one, before anything is computed with them.
type keyRing struct {
	keys    int
	primary *packet.PublicKey // the last one; nil when it could not be read
	own     int               // signatures of it by itself
	subkeys int
}

func (r *keyRing) add(one *packet.OpaquePacket) error {
	switch one.Tag {
	case secretKeyTag, secretSubkeyTag:
		return errPrivate
	case publicKeyTag:
		r.keys++
		r.primary = nil
		r.own = 0
		r.subkeys = 0
		return r.addKey(one, true)
	case publicSubkeyTag:
		if r.subkeys++; r.subkeys > maxSubkeys {
			return fmt.Errorf("a PGP key in it has more than %d subkeys", maxSubkeys)
		}
		return r.addKey(one, false)
	case signatureTag:
		return r.addSignature(one)
	}
	return nil
}

func (r *keyRing) addKey(one *packet.OpaquePacket, primary bool) error {
	parsed, err := one.Parse()
	key, ok := parsed.(*packet.PublicKey)
	if err != nil || !ok {
		return nil // the library does not read it either, which is noticed at the end
	}
	if primary {
		r.primary = key
	}
	switch public := key.PublicKey.(type) {
	case *rsa.PublicKey:
		err = verify.CheckRSASize(public)
	case *dsa.PublicKey:
		if bits := public.P.BitLen(); bits > maxDSABits || public.Q.BitLen() > maxDSABits {
			err = fmt.Errorf("the DSA key has %d bits: %d are the limit", bits, maxDSABits)
		}
	}
	if err != nil {
		return fmt.Errorf("the PGP key %X: %w", key.Fingerprint, err)
	}
	return nil
}

func (r *keyRing) addSignature(one *packet.OpaquePacket) error {
	if len(one.Contents) > maxSignatureBytes {
		return fmt.Errorf("a PGP key in it has a signature of %d bytes: %d are the limit", len(one.Contents), maxSignatureBytes)
	}
	parsed, err := one.Parse()
	signature, ok := parsed.(*packet.Signature)
	if err != nil || !ok || r.primary == nil {
		return nil // of a version that the library passes over as well
	}
	if signature.IssuerKeyId != nil && !signature.CheckKeyIdOrFingerprint(r.primary) {
		return nil
	}
	if r.own++; r.own > maxOwnSignatures {
		return fmt.Errorf("the PGP key %X has more than %d signatures by itself: export it with gpg --export-options export-minimal",
			r.primary.Fingerprint, maxOwnSignatures)
	}
	return nil
}
