// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"crypto/dsa" //nolint:staticcheck // it has to be refused
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		" a\nb\tc ":              "a b c",
		"a\x00\x1b[31mb":         `a\u0000\u001b[31mb`,
		"jane\u202eeenaj\u200bx": `jane\u202eeenaj\u200bx`,
		"\xff":                   "\ufffd",
		"Jürgen ☃":               "Jürgen ☃",
		"":                       "",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for _, long := range []string{strings.Repeat("a", 5000), strings.Repeat("☃", 5000)} {
		if got := Text(long); utf8.RuneCountInString(got) != 256 || !strings.HasSuffix(got, "…") {
			t.Errorf("%d characters: %q", utf8.RuneCountInString(got), got)
		}
	}
}

func TestCheckKey(t *testing.T) {
	bits := func(n uint) *rsa.PublicKey { return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), n-1), E: 65537} }
	curve := func(c elliptic.Curve) *ecdsa.PublicKey { return &ecdsa.PublicKey{Curve: c} }
	for name, tc := range map[string]struct {
		key any
		ok  bool
	}{
		"RSA2047": {bits(2047), false}, "RSA2048": {bits(2048), true}, "RSA8192": {bits(8192), true}, "RSA8193": {bits(8193), false},
		"M33Exponent": {&rsa.PublicKey{N: bits(4096).N, E: 1<<24 - 1}, false}, "M33Small": {&rsa.PublicKey{N: bits(4096).N, E: 1}, false}, "E3": {&rsa.PublicKey{N: bits(4096).N, E: 3}, true},
		"P224": {curve(elliptic.P224()), false}, "P256": {curve(elliptic.P256()), true}, "P384": {curve(elliptic.P384()), true},
		"P521": {curve(elliptic.P521()), true}, "Ed25519": {ed25519.PublicKey{}, true}, "DSA": {&dsa.PublicKey{}, false}, "None": {nil, false},
	} {
		if err := CheckKey(tc.key); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInterrupts(t *testing.T) {
	for reason, want := range map[fetch.Reason]bool{
		fetch.Unreachable: true, fetch.Timeout: true, fetch.RateLimited: true, fetch.Unauthorized: true,
		fetch.NotFound: false, fetch.LimitExceeded: false, fetch.InvalidContent: false, fetch.DigestMismatch: false,
	} {
		if got := Interrupts(fetch.Errorf(reason, "x")); got != want {
			t.Errorf("%s: %t", reason, got)
		}
	}
	if !Interrupts(context.Canceled) || Interrupts(nil) {
		t.Error("an end, or nothing at all")
	}
}

func TestGuard(t *testing.T) {
	var none []int
	err := Guard(func() error { none[len(none)]++; return nil })
	if err == nil || !strings.Contains(err.Error(), "malformed") {
		t.Error(err)
	}
	if err := Guard(func() error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

func TestAttempts(t *testing.T) {
	var none, missed, one, many Attempts
	missed.Missed(fetch.Errorf(fetch.LimitExceeded, "there are more than 1000"))
	one.Failed(errors.New("wrong key"))
	for range 3 {
		many.Failed(errors.New("wrong\nkey"))
	}
	many.Skipped(7)
	many.Skipped(-3)
	for want, a := range map[string]Attempts{
		"it has no signature: sign it":                                     none,
		"no signature by key a could be found: there are more than 1000":   missed,
		"the only signature is not by key a: wrong key":                    one,
		"none of 3 signatures is by key a; the last one: wrong key (7 mor": many,
	} {
		if err := a.Error("key a", "sign it"); fetch.ReasonOf(err) != fetch.Unverified || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
