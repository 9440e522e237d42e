// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch/git/sshkey"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// Of OpenSSH's PROTOCOL.sshsig.
const (
	magic         = "SSHSIG"
	versionOne    = 1
	gitsNamespace = "git"
)

// envelope is a signature without its magic.
type envelope struct {
	Version       uint32
	PublicKey     []byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Signature     []byte
}

// message is what is signed in place of the content, after the magic.
type message struct {
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Hash          []byte
}

// hashes are those that PROTOCOL.sshsig allows.
var hashes = map[string]func([]byte) []byte{
	"sha256": func(content []byte) []byte { sum := sha256.Sum256(content); return sum[:] },
	"sha512": func(content []byte) []byte { sum := sha512.Sum512(content); return sum[:] },
}

// signer is a key, who has it, and for what it counts.
type signer struct {
	key        ssh.PublicKey
	principal  string
	namespaces []string // patterns; nil for all
	// The key counts between these; zero for always.
	after, before time.Time
}

// verifySSH verifies a signature that ssh-keygen -Y sign made.
func (k Keys) verifySSH(s *signed, armored []byte, now time.Time) (string, error) {
	e, key, err := openEnvelope(armored)
	if err != nil {
		return "", err
	}
	shown := sshkey.Show(key)
	if err := sshkey.Check(key); err != nil {
		return "", fmt.Errorf("its SSH signature with the key %s: %w", shown, err)
	}
	who, err := k.signerOf(key, s.when, now)
	if err != nil {
		return "", fmt.Errorf("its SSH signature with the key %s: %w", shown, err)
	}
	if err := e.check(key, s.payload); err != nil {
		return "", fmt.Errorf("its SSH signature with the key %s: %w", shown, err)
	}
	return "ssh " + ssh.FingerprintSHA256(key) + " " + verify.Text(who.principal), nil
}

// openEnvelope reads a signature and the key that it names.
func openEnvelope(armored []byte) (*envelope, ssh.PublicKey, error) {
	bad := errors.New("its SSH signature is malformed")
	lines := strings.Split(strings.TrimSpace(string(armored)), "\n")
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.Join(lines[1:len(lines)-1], ""))
	if err != nil {
		return nil, nil, bad
	}
	content, found := strings.CutPrefix(string(raw), magic)
	var e envelope
	if !found || ssh.Unmarshal([]byte(content), &e) != nil || e.Version != versionOne {
		return nil, nil, bad
	}
	key, err := ssh.ParsePublicKey(e.PublicKey)
	if err != nil {
		return nil, nil, bad
	}
	if _, certified := key.(*ssh.Certificate); certified {
		return nil, nil, errors.New("its SSH signature is by a certificate, which is not supported: sign with a plain key")
	}
	return &e, key, nil
}

// signerOf returns who has a key. Like gpg's, it must count now; like git, also when the commit says it was made.
func (k Keys) signerOf(key ssh.PublicKey, made, now time.Time) (signer, error) {
	why := fmt.Errorf("the key is not among the %d that are trusted", len(k.ssh))
	for _, one := range k.ssh {
		switch {
		case !sshkey.Equal(one.key, key):
		case one.namespaces != nil && !sshkey.MatchAny(one.namespaces, gitsNamespace):
			why = fmt.Errorf("the key is not trusted for the namespace %q", gitsNamespace)
		case !one.counts(now) || !one.counts(made):
			why = errors.New("the key is expired, or not valid yet")
		default:
			return one, nil
		}
	}
	return signer{}, why
}

func (s signer) counts(at time.Time) bool {
	return (s.after.IsZero() || !at.Before(s.after)) && (s.before.IsZero() || at.Before(s.before))
}

// check verifies the signature over some content.
func (e *envelope) check(key ssh.PublicKey, content []byte) error {
	hash, known := hashes[e.HashAlgorithm]
	switch {
	case e.Namespace != gitsNamespace:
		return fmt.Errorf("it was made for %s, not for %q", verify.Text(e.Namespace), gitsNamespace)
	case e.Reserved != "" || !known:
		return errors.New("it is made in a way that is not supported")
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(e.Signature, &signature); err != nil {
		return errors.New("it is malformed")
	}
	if !slices.Contains(sshkey.Algorithms(key.Type()), signature.Format) {
		return fmt.Errorf("the algorithm %s is not accepted", verify.Text(signature.Format))
	}
	over := append([]byte(magic), ssh.Marshal(message{e.Namespace, e.Reserved, e.HashAlgorithm, hash(content)})...)
	if key.Verify(over, &signature) != nil {
		return errors.New("it does not match the content")
	}
	return nil
}
