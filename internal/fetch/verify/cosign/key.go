// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	sigstore "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// maxKeys bounds the keys of a Secret.
const maxKeys = 64

func forKeys(entries map[string][]byte, trusted *root.TrustedRoot) (*Verifier, error) {
	if trusted != nil && len(trusted.RekorLogs()) == 0 {
		return nil, fetch.Errorf(fetch.Refused, "the trusted root has no transparency log, so that no signature could be in one: %s", rootHint)
	}
	v := &Verifier{unlogged: trusted == nil}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !strings.HasSuffix(name, KeySuffix) {
			continue
		}
		key, err := parseKey(entries[name])
		if err != nil {
			return nil, fetch.Errorf(fetch.Refused, "the entry %s is not a public key: %s", fetch.Quote(name), err)
		}
		signer, err := keySigner(name, key, trusted)
		if err != nil {
			return nil, fetch.Errorf(fetch.Refused, "the entry %s: %w", fetch.Quote(name), err)
		}
		v.signers, names = append(v.signers, signer), append(names, name)
	}
	switch {
	case len(names) == 0:
		return nil, fetch.Errorf(fetch.Refused,
			"%w: give public keys as entries *%s of the Secret, or identities", verify.ErrNoTrust, KeySuffix)
	case len(names) > maxKeys:
		return nil, fetch.Errorf(fetch.Refused, "the Secret has %d keys: %d are the limit", len(names), maxKeys)
	}
	v.by = among("key", names)
	return v, nil
}

// parseKey reads exactly one PEM block. Its errors do not repeat the content, which may be a private key by mistake.
func parseKey(data []byte) (crypto.PublicKey, error) {
	if len(data) > verify.EntryBytes {
		return nil, errors.New("it is too long")
	}
	block, rest := pem.Decode(data)
	if block == nil || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN ")) {
		return nil, errors.New("it has to be PEM, beginning with -----BEGIN PUBLIC KEY-----")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("something follows the first key: give each key an entry of its own")
	}
	var key crypto.PublicKey
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		return nil, errors.New("its PEM block has to be of the type PUBLIC KEY")
	}
	if err != nil {
		return nil, errors.New("what is in the PEM block cannot be read")
	}
	return key, verify.CheckKey(key)
}

func keySigner(name string, public crypto.PublicKey, trusted *root.TrustedRoot) (signer, error) {
	key, err := newKey(public)
	if err != nil {
		return signer{}, err
	}
	var base root.TrustedMaterial = &root.BaseTrustedMaterial{}
	options := []sigstore.VerifierOption{sigstore.WithNoObserverTimestamps()}
	if trusted != nil {
		base, options = trusted, append(options, sigstore.WithTransparencyLog(1))
	}
	material := keyMaterial{TrustedMaterial: base, key: root.NewExpiringKey(key, time.Time{}, time.Time{})}
	verifier, err := sigstore.NewVerifier(material, options...)
	if err != nil {
		return signer{}, err
	}
	return signer{
		verifier: verifier,
		logged:   trusted != nil,
		policy:   []sigstore.PolicyOption{sigstore.WithKey()},
		name:     func(*sigstore.VerificationResult) string { return "key " + name },
	}, nil
}

// keyMaterial trusts one key beside what a trusted root says about logs.
type keyMaterial struct {
	root.TrustedMaterial
	key *root.ExpiringKey
}

// PublicKeyVerifier returns the key whatever hint a signature gives.
func (m keyMaterial) PublicKeyVerifier(string) (root.TimeConstrainedVerifier, error) {
	return m.key, nil
}

// key verifies signatures by one public key, with any of the hashes that cosign may have used with it: SHA-256 for all
// keys, since version 3 also the hash of the size of the curve.
type key struct {
	public crypto.PublicKey
	hashes []signature.Verifier
}

func newKey(public crypto.PublicKey) (*key, error) {
	k := &key{public: public}
	for _, hash := range hashesOf(public) {
		verifier, err := signature.LoadVerifier(public, hash)
		if err != nil {
			return nil, err
		}
		k.hashes = append(k.hashes, verifier)
	}
	return k, nil
}

func hashesOf(public crypto.PublicKey) []crypto.Hash {
	if key, ok := public.(*ecdsa.PublicKey); ok {
		switch key.Curve {
		case elliptic.P384():
			return []crypto.Hash{crypto.SHA256, crypto.SHA384}
		case elliptic.P521():
			return []crypto.Hash{crypto.SHA256, crypto.SHA512}
		}
	}
	return []crypto.Hash{crypto.SHA256}
}

// errWholeMessage is for who signed an archive in a way that its digest is not enough for.
var errWholeMessage = errors.New("Ed25519 signs the whole content, of which only the digest is known here: use an ECDSA or RSA key")

// VerifySignature implements signature.Verifier.
func (k *key) VerifySignature(sig, message io.Reader, opts ...signature.VerifyOption) error {
	rawSignature, err := io.ReadAll(sig)
	if err != nil {
		return err
	}
	var digest []byte
	for _, opt := range opts {
		opt.ApplyDigest(&digest)
	}
	if _, whole := k.public.(ed25519.PublicKey); whole && digest != nil {
		return errWholeMessage // the library would verify an empty message
	}
	content, err := io.ReadAll(message)
	if err != nil {
		return err
	}
	for _, verifier := range k.hashes { // those of another size than the digest refuse it
		if verifier.VerifySignature(bytes.NewReader(rawSignature), bytes.NewReader(content), opts...) == nil {
			return nil
		}
	}
	return errors.New("the signature is by another key, or of something else")
}

// PublicKey implements signature.PublicKeyProvider.
func (k *key) PublicKey(...signature.PublicKeyOption) (crypto.PublicKey, error) { return k.public, nil }
