// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// settings are what is accepted of PGP. Signatures of content are never with SHA-1; those with which a key binds its parts
// together may be, as old keys have them, and as they come from the trusted Secret.
func settings(now time.Time) *packet.Config {
	return &packet.Config{
		Time:       func() time.Time { return now },
		MinRSABits: 2048,
		RejectMessageHashAlgorithms: map[crypto.Hash]bool{
			crypto.SHA1: true, crypto.MD5: true, crypto.RIPEMD160: true, crypto.SHA224: true,
		},
	}
}

// verifyPGP verifies a detached signature. Its key must be valid now, whenever the signature says it was made: who steals
// an expired key can date one back.
func (k Keys) verifyPGP(payload, armored []byte, now time.Time) (string, error) {
	signature, err := readSignature(armored)
	if err != nil {
		return "", err
	}
	config, issuer := settings(now), *signature.IssuerKeyId
	err = fmt.Errorf("the key is not among the %d that are trusted", len(k.pgp))
	if k.lock != nil { // the library keeps in the keys what it found out about them
		k.lock.Lock()
		defer k.lock.Unlock()
	}
	for _, entity := range k.pgp.EntitiesById(issuer) {
		if err = checkPGP(entity, signature, payload, config); err == nil {
			return describe(entity, config), nil
		}
	}
	return "", fmt.Errorf("its PGP signature with the key %016X: %w", issuer, err)
}

// checkPGP verifies a signature by one of the keys of an entity.
func checkPGP(entity *openpgp.Entity, signature *packet.Signature, payload []byte, config *packet.Config) error {
	now := config.Now()
	key, valid := entity.SigningKeyById(now, *signature.IssuerKeyId, config)
	switch {
	case entity.Revoked(now):
		return errors.New("the key is revoked")
	case !valid:
		return errors.New("the key is expired, revoked, too weak, or not made for signatures")
	case config.RejectMessageHashAlgorithm(signature.Hash):
		return fmt.Errorf("the hash %s is not accepted", signature.Hash)
	case signature.CreationTime.Before(key.PublicKey.CreationTime):
		return errors.New("it is older than its key")
	case signature.SigExpired(now):
		return errors.New("it is expired, or lies in the future")
	case slices.ContainsFunc(signature.Notations, func(n *packet.Notation) bool { return n.IsCritical }):
		return errors.New("it has a condition that is not known")
	}
	hash, err := signature.PrepareVerify()
	if err != nil {
		return errors.New("it is made in a way that is not supported")
	}
	hash.Write(payload)
	if key.PublicKey.VerifySignature(hash, signature) != nil {
		return errors.New("it does not match the content")
	}
	return nil
}

// readSignature returns the only packet in a block, which must be a signature of bytes.
func readSignature(armored []byte) (*packet.Signature, error) {
	malformed := errors.New("its PGP signature is malformed, or of a version that is not supported")
	decoded, err := pgparmor.Decode(bytes.NewReader(armored))
	if err != nil {
		return nil, malformed
	}
	packets := packet.NewOpaqueReader(io.LimitReader(decoded.Body, verify.DocumentBytes))
	opaque, err := packets.Next()
	if err != nil || len(opaque.Contents) > maxSignatureBytes {
		return nil, malformed
	}
	if _, err := packets.Next(); !errors.Is(err, io.EOF) {
		return nil, errors.New("its PGP signature is several, or something follows it")
	}
	parsed, err := opaque.Parse()
	signature, ok := parsed.(*packet.Signature)
	if err != nil || !ok || signature.IssuerKeyId == nil {
		return nil, malformed
	}
	if signature.SigType != packet.SigTypeBinary {
		return nil, errors.New("its PGP signature is one of a text, which says nothing about bytes")
	}
	return signature, nil
}

// describe names a key for people.
func describe(entity *openpgp.Entity, config *packet.Config) string {
	text := fmt.Sprintf("pgp %X", entity.PrimaryKey.Fingerprint)
	if _, identity := entity.PrimaryIdentity(config.Now(), config); identity != nil {
		text += " " + verify.Text(identity.Name)
	}
	return text
}

const publicBegin = "-----BEGIN PGP PUBLIC KEY BLOCK-----"

// readArmoredKeys reads all blocks of a text; what stands between them is ignored, as by gpg.
func readArmoredKeys(text string) (openpgp.EntityList, error) {
	var all openpgp.EntityList
	parts := strings.Split(text, publicBegin)
	for _, part := range parts[1:] {
		decoded, err := pgparmor.Decode(strings.NewReader(publicBegin + part))
		if err != nil {
			return nil, errNoKey
		}
		raw, err := io.ReadAll(decoded.Body)
		if err != nil {
			return nil, errNoKey
		}
		found, err := readKeys(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

var errNoKey = errors.New("it has no PGP public key, or a malformed one")
