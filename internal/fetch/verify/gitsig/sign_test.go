// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"math/big"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
	"golang.org/x/crypto/ssh"
)

// bare is a commit without a signature, and its header alone.
const (
	bareTree   = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	bareHeader = "tree " + bareTree + "\nauthor a <a@example.org> 1767225600 +0000\ncommitter a <a@example.org> 1767225600 +0000\n"
	bareBody   = "\nmessage\n"
	bareTag    = "object 1111111111111111111111111111111111111111\ntype commit\ntag v1.0.0\ntagger a <a@example.org> 1767225600 +0000\n\nrelease\n"
)

// signing makes a signature of some bytes, armored.
type signing func(payload string) string

// signCommit puts a signature between header and body, as git does.
func signCommit(header, body string, sign signing) []byte {
	return []byte(header + asHeader(sign(header+body)) + body)
}

// asHeader is a signature as a header of a commit.
func asHeader(signature string) string {
	return "gpgsig " + strings.ReplaceAll(strings.TrimSuffix(signature, "\n"), "\n", "\n ") + "\n"
}

// sshKeyOf is always the same key for a number.
func sshKeyOf(t testing.TB, number byte) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{number}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// authorized is a key as a line.
func authorized(key ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(key)) }

// sshSigning makes signatures as ssh-keygen does, with whatever is changed.
func sshSigning(t testing.TB, signer ssh.Signer, change func(*envelope)) signing {
	return func(payload string) string {
		t.Helper()
		e := &envelope{Version: 1, PublicKey: signer.PublicKey().Marshal(), Namespace: "git", HashAlgorithm: "sha512"}
		if change != nil {
			change(e)
		}
		hash := hashes[e.HashAlgorithm]
		if hash == nil {
			hash = func(content []byte) []byte { sum := sha1.Sum(content); return sum[:] }
		}
		if e.Signature == nil {
			over := append([]byte(magic), ssh.Marshal(message{e.Namespace, e.Reserved, e.HashAlgorithm, hash([]byte(payload))})...)
			signature, err := signSSH(signer, over)
			if err != nil {
				t.Fatal(err)
			}
			e.Signature = ssh.Marshal(*signature)
		}
		return sshArmor(append([]byte(magic), ssh.Marshal(*e)...))
	}
}

// signSSH signs as OpenSSH does today, and with SHA-1 where the signer can nothing else.
func signSSH(signer ssh.Signer, over []byte) (*ssh.Signature, error) {
	if algorithms, ok := signer.(ssh.MultiAlgorithmSigner); ok {
		return algorithms.SignWithAlgorithm(rand.Reader, over, algorithms.Algorithms()[0])
	}
	return signer.Sign(rand.Reader, over)
}

func sshArmor(raw []byte) string {
	text := base64.StdEncoding.EncodeToString(raw)
	var lines strings.Builder
	for len(text) > 70 {
		lines.WriteString(text[:70] + "\n")
		text = text[70:]
	}
	return "-----BEGIN SSH SIGNATURE-----\n" + lines.String() + text + "\n-----END SSH SIGNATURE-----\n"
}

// born is when the PGP keys of tests were made.
var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(when time.Time) *packet.Config { return &packet.Config{Time: func() time.Time { return when }} }

// plainly lets a signature be made without a random remark, for which the library refuses old hashes.
func plainly() *packet.Config {
	no := false
	return &packet.Config{NonDeterministicSignaturesViaNotation: &no}
}

// pgpKeyOf is always the same key for a number, RSA of 2048 bits.
func pgpKeyOf(t testing.TB, number byte) *openpgp.Entity {
	t.Helper()
	return pgpKeyFrom(t, fixedRSA(number), at(born))
}

// pgpKeyFrom makes a key that can certify and sign.
func pgpKeyFrom(t testing.TB, private *rsa.PrivateKey, config *packet.Config) *openpgp.Entity {
	t.Helper()
	primary := packet.NewRSAPrivateKey(config.Now(), private)
	e := &openpgp.Entity{PrimaryKey: &primary.PublicKey, PrivateKey: primary, Identities: map[string]*openpgp.Identity{}}
	if err := e.AddUserId("Key", "", "key@example.org", config); err != nil {
		t.Fatal(err)
	}
	return e
}

// found are the keys that fixedRSA has found, which takes a while.
var found sync.Map

// fixedRSA finds primes in a stream of numbers that is always the same.
func fixedRSA(number byte) *rsa.PrivateKey {
	if key, known := found.Load(number); known {
		return key.(*rsa.PrivateKey)
	}
	stream := mathrand.NewChaCha8([32]byte{number})
	one, exponent := big.NewInt(1), big.NewInt(65537)
	prime := func() *big.Int {
		for {
			raw := make([]byte, 128)
			_, _ = stream.Read(raw)
			raw[0], raw[127] = raw[0]|0xc0, raw[127]|1
			p := new(big.Int).SetBytes(raw)
			if p.ProbablyPrime(20) && new(big.Int).GCD(nil, nil, new(big.Int).Sub(p, one), exponent).Cmp(one) == 0 {
				return p
			}
		}
	}
	p, q := prime(), prime()
	phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	key := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: 65537},
		D:         new(big.Int).ModInverse(exponent, phi), Primes: []*big.Int{p, q},
	}
	key.Precompute()
	found.Store(number, key)
	return key
}

// public is a key as people publish it.
func public(t testing.TB, e *openpgp.Entity) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := pgparmor.Encode(&out, "PGP PUBLIC KEY BLOCK", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Serialize(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}

// pgpSigning makes signatures as gpg does, with whatever is changed before.
func pgpSigning(t testing.TB, key *packet.PrivateKey, change func(*packet.Signature)) signing {
	return func(payload string) string {
		t.Helper()
		id := key.KeyId
		s := &packet.Signature{
			Version: 4, SigType: packet.SigTypeBinary, PubKeyAlgo: key.PubKeyAlgo, Hash: crypto.SHA512,
			CreationTime: born.Add(time.Hour), IssuerKeyId: &id, IssuerFingerprint: key.Fingerprint,
		}
		if change != nil {
			change(s)
		}
		hash := s.Hash.New()
		hash.Write([]byte(payload))
		if err := s.Sign(hash, key, plainly()); err != nil {
			t.Fatal(err)
		}
		return pgpArmor(t, s)
	}
}

func pgpArmor(t testing.TB, packets ...*packet.Signature) string {
	t.Helper()
	var out bytes.Buffer
	w, err := pgparmor.Encode(&out, "PGP SIGNATURE", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packets {
		if err := p.Serialize(w); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String() + "\n"
}
