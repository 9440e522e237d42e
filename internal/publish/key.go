// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// Key signs what is pushed.
type Key struct{ signer signature.SignerVerifier }

// Types of the private keys that cosign writes, and the one that others do.
const (
	sigstoreKeyType = "ENCRYPTED SIGSTORE PRIVATE KEY"
	cosignKeyType   = "ENCRYPTED COSIGN PRIVATE KEY"
	plainKeyType    = "PRIVATE KEY"
)

// ErrPassword tells that a key could not be decrypted.
var ErrPassword = errors.New("the password of the key is wrong")

// Encrypted tells whether a key needs a password.
func Encrypted(data []byte) bool {
	block, _ := pem.Decode(data)
	return block != nil && strings.HasPrefix(block.Type, "ENCRYPTED ")
}

// ReadKey reads a private key as cosign generate-key-pair and import-key-pair write it, or an unencrypted one in PKCS #8.
// Errors say nothing of its content.
func ReadKey(data, password []byte) (*Key, error) {
	block, rest := pem.Decode(data)
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it is not one private key in PEM: give the .key file that cosign generate-key-pair wrote")
	}
	der := block.Bytes
	switch block.Type {
	case sigstoreKeyType, cosignKeyType:
		var err error
		if der, err = encrypted.Decrypt(block.Bytes, password); err != nil {
			return nil, ErrPassword
		}
	case plainKeyType:
	default:
		return nil, fmt.Errorf("it is %q, no private key that cosign knows: make one of it with cosign import-key-pair", shown(block.Type))
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("it holds no key in PKCS #8")
	}
	signer, err := signature.LoadDefaultSignerVerifier(private)
	if err != nil {
		return nil, fmt.Errorf("keys of this kind do not sign (%T): use ECDSA, RSA or Ed25519", private)
	}
	return &Key{signer: signer}, nil
}

// shown bounds the type of a block.
func shown(text string) string { return text[:min(len(text), 64)] }

// Public is the public key as PEM.
func (k *Key) Public() ([]byte, error) {
	public, err := k.public()
	if err != nil {
		return nil, err
	}
	return cryptoutils.MarshalPublicKeyToPEM(public)
}

func (k *Key) public() (crypto.PublicKey, error) { return k.signer.PublicKey() }
