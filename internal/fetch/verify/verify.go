// SPDX-License-Identifier: Apache-2.0

// Package verify holds what the verifiers of signatures have in common: bounds, keys that may be computed with, and
// the words for what was tried.
//
// A verifier gets its trust (keys, certificates, policies) as plain values. Trust that cannot be read is
// fetch.Refused and names the entry, never its content. Content without a signature that the trust accepts is
// fetch.Unverified. Whatever else happens is an error as well: there is no path to content that was not verified.
package verify

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/visible"
)

// Limits on what signatures may be.
const (
	// Candidates is how many signatures of one subject are looked at.
	Candidates = 50
	// DocumentBytes bounds a signature: a bundle, an envelope, a payload.
	DocumentBytes = 256 << 10
	// ManifestBytes bounds the declared size of a manifest that refers to a signature.
	ManifestBytes = 64 << 10
	// EntryBytes bounds an entry of a Secret.
	EntryBytes = 1 << 20
)

// maxText bounds, in characters, what Text returns.
const maxText = 256

// ErrNoTrust is in the errors about trust that is valid and trusts no signer: the last key was removed.
var ErrNoTrust = errors.New("there is nothing to verify with")

// Text makes words from outside fit to be shown: one line of at most 256 characters, in which everything that is not
// visible (control, bidirectional and zero-width characters, broken UTF-8) is escaped.
func Text(s string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(s[:min(len(s), 4*maxText)]))
	cleaned := []rune(visible.Escape(line))
	if len(cleaned) > maxText {
		return string(cleaned[:maxText-1]) + "…"
	}
	return string(cleaned)
}

// Interrupts tells whether an error says nothing about a signature, because the registry could not be asked. A bad
// signature is passed over for the next one; after this the whole verification has to be tried again.
func Interrupts(err error) bool {
	switch fetch.ReasonOf(err) {
	case fetch.NotFound, fetch.LimitExceeded, fetch.InvalidContent, fetch.DigestMismatch, fetch.Refused, fetch.Unverified:
		return false
	default:
		return err != nil
	}
}

// Guard runs code of others on bytes of others, and makes an error of a panic: a parser that trips over a hostile
// signature has not accepted it.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the signature is malformed: %v", p)
		}
	}()
	return f()
}

// Attempts counts signatures that were not accepted.
type Attempts struct {
	tried, left int
	last        string
}

// Failed notes why a signature was not accepted.
func (a *Attempts) Failed(err error) {
	a.tried++
	a.last = Text(err.Error())
}

// Missed notes that signatures could not even be listed; err is nil when there are none.
func (a *Attempts) Missed(err error) {
	if err != nil {
		a.last = Text(err.Error())
	}
}

// Skipped notes signatures that were left out because there are too many.
func (a *Attempts) Skipped(n int) { a.left += max(n, 0) }

// Error returns the failure: no signature is by the expected signer.
func (a *Attempts) Error(by, hint string) error {
	var text string
	switch {
	case a.tried == 0 && a.last == "":
		return fetch.Errorf(fetch.Unverified, "it has no signature: %s", hint)
	case a.tried == 0:
		text = fmt.Sprintf("no signature by %s could be found: %s", by, a.last)
	case a.tried == 1:
		text = fmt.Sprintf("the only signature is not by %s: %s", by, a.last)
	default:
		text = fmt.Sprintf("none of %d signatures is by %s; the last one: %s", a.tried, by, a.last)
	}
	if a.left > 0 {
		text += fmt.Sprintf(" (%d more were not looked at: %d are the limit)", a.left, Candidates)
	}
	return fetch.Errorf(fetch.Unverified, "%s", text)
}
