// SPDX-License-Identifier: Apache-2.0

// Package gitsig verifies who signed a commit or a tag, by PGP or SSH, over the bytes of the object as the server sent it.
//
// It fails closed: a key that is expired or revoked now, SHA-1, RSA of less than 2048 bits, an object that could be read in
// two ways or has two signatures are all no signature. Trust that cannot be read is fetch.Refused and names the entry;
// what the trust does not accept is fetch.Unverified.
package gitsig

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// Keys are the trusted signing keys. The zero value trusts no signature.
type Keys struct {
	lock *sync.Mutex // of pgp
	pgp  openpgp.EntityList
	ssh  []signer
}

// errUnsigned is for what has no signature at all.
var errUnsigned = errors.New("it is not signed")

// Commit verifies the signature in a commit object and returns its signer.
func (k Keys) Commit(raw []byte, now time.Time) (by string, err error) {
	s, err := openCommit(raw)
	if err == nil {
		by, err = k.verify(s, now)
	}
	return by, unverified(err, "the commit")
}

// Tag verifies the signature in a tag object and returns its signer. The tag must have that name and point at that
// commit: one that was signed for something else says nothing about it.
func (k Keys) Tag(raw []byte, name, commit string, now time.Time) (by string, err error) {
	s, err := openTag(raw)
	if err == nil {
		err = s.isFor(name, commit)
	}
	if err == nil {
		by, err = k.verify(s, now)
	}
	return by, unverified(err, "the tag "+fetch.Quote(name))
}

// isFor compares what a tag object says with what it is taken for.
func (s *signed) isFor(name, commit string) error {
	switch {
	case s.field("tag") != name:
		return fmt.Errorf("it was made as the tag %s", fetch.Quote(s.field("tag")))
	case s.field("type") != "commit" || s.field("object") != commit:
		return fmt.Errorf("it points at the %s %s", verify.Text(s.field("type")), verify.Text(s.field("object")))
	}
	return nil
}

func unverified(err error, what string) error {
	if err == nil {
		return nil
	}
	return fetch.Errorf(fetch.Unverified, "%s is not verified: %w", what, err)
}

// verify returns the signer of a signature.
func (k Keys) verify(s *signed, now time.Time) (by string, err error) {
	armored, err := block(s.signature)
	if err != nil {
		return "", err
	}
	err = verify.Guard(func() error {
		switch armored.kind {
		case "PGP SIGNATURE":
			by, err = k.verifyPGP(s.payload, armored.text, now)
		case "SSH SIGNATURE":
			by, err = k.verifySSH(s, armored.text, now)
		default:
			err = fmt.Errorf("its signature is of the kind %s: PGP and SSH signatures are supported", verify.Text(armored.kind))
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return by, nil
}

// armor is one block of "-----BEGIN kind-----", text, "-----END kind-----".
type armor struct {
	kind string
	text []byte // with the marks
}

// block reads a signature that is one block and nothing else.
func block(signature []byte) (armor, error) {
	if len(signature) > verify.DocumentBytes {
		return armor{}, fmt.Errorf("its signature has more than %d bytes", verify.DocumentBytes)
	}
	if bytes.IndexByte(signature, '\r') >= 0 {
		return armor{}, errors.New("its signature has a carriage return in it")
	}
	text := strings.TrimRight(string(signature), "\n")
	first, _, _ := strings.Cut(text, "\n")
	kind, begins := strings.CutPrefix(first, "-----BEGIN ")
	kind, ends := strings.CutSuffix(kind, "-----")
	if !begins || !ends || !strings.HasSuffix(text, "\n-----END "+kind+"-----") || strings.Count(text, "-----") != 4 {
		return armor{}, errors.New("its signature is not one armored block")
	}
	return armor{kind, []byte(text + "\n")}, nil
}
