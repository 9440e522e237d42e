// SPDX-License-Identifier: Apache-2.0

// Package keyring holds the keys of an installation, which are entries of one Secret. The newest key signs and wraps, all of
// them verify and unwrap, so that a key can be replaced while the statuses made with the former one are still valid.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/format"
)

// Limits of a keyring.
const (
	keyBytes = 32 // minimal length of a key, and length of generated keys
	maxBytes = 1024
	maxKeys  = 16
)

// Ring holds the keys of an installation, the newest first. The zero value has none and signs nothing.
type Ring struct{ keys []key }

type key struct {
	id    string
	value []byte
}

// New returns the keys in a Secret's data: the last name in byte order is the newest key, so names are timestamps.
func New(data map[string][]byte) (Ring, error) {
	names := slices.Sorted(maps.Keys(data))
	switch {
	case len(names) == 0:
		return Ring{}, errors.New("it has no key")
	case len(names) > maxKeys:
		return Ring{}, fmt.Errorf("it has %d keys, and may have %d: remove the oldest", len(names), maxKeys)
	}
	var ring Ring
	for _, name := range slices.Backward(names) {
		value := data[name]
		if len(value) < keyBytes || len(value) > maxBytes {
			return Ring{}, fmt.Errorf("its entry %q has %d bytes, and a key has %d to %d", name, len(value), keyBytes, maxBytes)
		}
		ring.keys = append(ring.keys, key{id: identify(value), value: value})
	}
	return ring, nil
}

// identify returns an ID of a key that does not reveal it.
func identify(value []byte) string {
	return hex.EncodeToString(Derive(value, format.HashKey.Purpose("key-id"))[:8])
}

// Derive derives a key for one purpose from another key.
func Derive(from []byte, purpose ...string) []byte {
	mac := hmac.New(sha256.New, from)
	for _, part := range purpose {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // so that different lists of parts have different encodings
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// Sign authenticates parts with the newest key; "" if there is none.
func (r Ring) Sign(parts ...string) string {
	if len(r.keys) == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(Derive(r.keys[0].value, parts...))
}

// Verify tells whether one of the keys authenticated the parts.
func (r Ring) Verify(signature string, parts ...string) bool {
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(given) == 0 {
		return false
	}
	return slices.ContainsFunc(r.keys, func(k key) bool { return hmac.Equal(given, Derive(k.value, parts...)) })
}

// HashKey returns the key for the hashes in the status of one object, and its encrypted form for that status, encrypted with
// the newest key. The hash key stays the same when the keys of the installation are rotated. If it cannot be decrypted,
// because it is missing, of another object, or encrypted with a removed key, a new one is derived from the newest key.
func (r Ring) HashKey(uid, wrapped string) (hashKey []byte, now string, err error) {
	if len(r.keys) == 0 {
		return nil, "", errors.New("there is no key")
	}
	newest := r.keys[0]
	of, err := format.HashKey.CutText(wrapped)
	if err != nil { // of another version, or none at all
		of = ""
	}
	id, sealed, _ := strings.Cut(of, ".")
	for _, k := range r.keys {
		if k.id != id {
			continue
		}
		opened, err := k.open(uid, sealed)
		switch {
		case err != nil: // not made by this installation
		case k.id == newest.id:
			return opened, wrapped, nil
		default:
			now, err = newest.seal(uid, opened)
			return opened, now, err
		}
	}
	hashKey = Derive(newest.value, format.HashKey.Purpose("hash-key"), uid)
	now, err = newest.seal(uid, hashKey)
	return hashKey, now, err
}

func (k key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(Derive(k.value, format.HashKey.Purpose("wrap")))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (k key) seal(uid string, secret []byte) (string, error) {
	aead, err := k.aead()
	if err != nil {
		return "", err
	}
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return "", fmt.Errorf("encrypting a key: %w", err)
	}
	return format.HashKey.Text(k.id + "." + base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, secret, []byte(uid)))), nil
}

func (k key) open(uid, sealed string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return nil, err
	}
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	if len(raw) < aead.NonceSize() {
		return nil, errors.New("it is too short")
	}
	return aead.Open(nil, raw[:aead.NonceSize()], raw[aead.NonceSize():], []byte(uid))
}
