// SPDX-License-Identifier: Apache-2.0

// Package sshkey holds what the transport and the verification of Git sources have in common about SSH keys: which ones are
// accepted, how they sign, and how lists of patterns in OpenSSH's files match.
package sshkey

import (
	"bytes"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// Check tells why a key is not accepted. Of a certificate it is the certified key.
func Check(key ssh.PublicKey) error {
	if certificate, ok := key.(*ssh.Certificate); ok {
		key = certificate.Key
	}
	cryptographic, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return errors.New("the type of the key is not accepted: use ECDSA, RSA or Ed25519")
	}
	return verify.CheckKey(cryptographic.CryptoPublicKey())
}

// Algorithms returns how a key of some type may sign, which is never with SHA-1.
func Algorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// Equal tells whether two keys are the same.
func Equal(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// Show returns a key as people compare it.
func Show(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

// MatchAny matches a text with patterns (ssh_config(5), PATTERNS). One that is negated and matches beats the others.
func MatchAny(patterns []string, text string) bool {
	found := false
	for _, pattern := range patterns {
		positive, negated := strings.CutPrefix(pattern, "!")
		if match(positive, text) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// match matches * and ?. It goes back to the last * only, so that no pattern is costly.
func match(pattern, text string) bool {
	at, tried := 0, 0 // in the pattern, and the text at which the last * ends
	star := -1        // the last *
	for i := 0; i < len(text); {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			star = at
			tried = i
			at++
		case at < len(pattern) && (pattern[at] == '?' || pattern[at] == text[i]):
			at++
			i++
		case star >= 0:
			tried++
			at = star + 1
			i = tried
		default:
			return false
		}
	}
	return strings.Trim(pattern[at:], "*") == ""
}
