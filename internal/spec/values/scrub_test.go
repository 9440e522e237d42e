// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/spec/values"
)

// TestI8Scrubbing uses secret values in all the forms in which messages quote them.
func TestI8Scrubbing(t *testing.T) {
	var s values.Scrubber
	s.Public("shop")
	s.AddDocument("db: {password: " + canary + ", host: db.internal, port: 54321, shop: shop, tls: true}\nkey: |\n  BEGIN-c4n4ry\n  line-c4n4ry\n")
	s.Add("quoted\"c4n4ry\\\n")
	for name, message := range map[string]string{
		"plain":       "cannot connect to " + canary + "@db.internal:54321",
		"quoted":      fmt.Sprintf("value %q is bad", canary),
		"escaped":     fmt.Sprintf("value %q is bad", "quoted\"c4n4ry\\"),
		"raw":         "value quoted\"c4n4ry\\ is bad",
		"base64":      "data: " + base64.StdEncoding.EncodeToString([]byte(canary)),
		"a line":      "unexpected line-c4n4ry here",
		"whole":       "BEGIN-c4n4ry\nline-c4n4ry\n",
		"within":      "https://u:" + canary + "@h/x" + canary,
		"number":      "54321 is out of range",
		"as a number": "5.4321e+04 is 54321",
	} {
		got := s.Text(message)
		for _, secret := range []string{"c4n4ry", canary, "db.internal", "54321 ", base64.StdEncoding.EncodeToString([]byte(canary))} {
			if strings.Contains(got, secret) {
				t.Errorf("%s: %q shows %q", name, got, secret)
			}
		}
		if !strings.Contains(got, values.Redacted) {
			t.Errorf("%s: %q does not say that something is missing", name, got)
		}
	}
	for _, text := range []string{"deployment shop/web is true", "line 3: no such key", ""} {
		if got := s.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestI8CutSecrets: the rest of a secret in a truncated message is removed, and words with the same beginning stay.
func TestI8CutSecrets(t *testing.T) {
	var s values.Scrubber
	s.Add("https://db.internal/" + canary)
	for text, want := range map[string]string{
		"at https://db.internal/s3cr3t-c4n":                 "at (redacted)",
		"at https://db.internal/s3cr3t-c4n… (12 more)":      "at (redacted)… (12 more)",
		"at https://db.internal/s3cr3t-c...":                "at (redacted)...",
		`at "https://db.internal/s3c" and https://db.inte…`: `at "(redacted)" and (redacted)…`,
		"see https://db.internal.example.org for more":      "see https://db.internal.example.org for more",
		"https://docs.example.org":                          "https://docs.example.org",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestScrubbedErrorsKeepTheirKind: the cause of a scrubbed error is found, and other errors stay unchanged.
func TestScrubbedErrorsKeepTheirKind(t *testing.T) {
	var s, nothing values.Scrubber
	s.Add(canary)
	cause := &values.Error{Problems: []string{canary}}
	err := s.Error(fmt.Errorf("rendering: %w", cause))
	var found *values.Error
	if !errors.As(err, &found) || err.Error() != "rendering: "+values.Redacted {
		t.Errorf("%v", err)
	}
	other := errors.New("something else")
	if s.Error(other) != other || nothing.Error(cause) != error(cause) || s.Error(nil) != nil { //nolint:errorlint // the very same ones
		t.Error("an error without secrets was changed")
	}
	var none *values.Scrubber
	if none.Text(canary) != canary || !none.Empty() {
		t.Error("nothing scrubs")
	}
}

// TestScrubberRemembers: the former secret values are also removed, since a message may be about them, but not the ones
// before those.
func TestScrubberRemembers(t *testing.T) {
	made := func(text string, former *values.Scrubber) *values.Scrubber {
		s := &values.Scrubber{}
		s.Add(text)
		s.After(former)
		return s
	}
	first := made("first-secret", nil)
	second := made("second-secret", first)
	again := made("second-secret", second)
	third := made("third-secret", again)
	const all = "first-secret second-secret third-secret"
	if got := again.Text(all); got != "(redacted) (redacted) third-secret" {
		t.Error(got)
	}
	if got := third.Text(all); got != "first-secret (redacted) (redacted)" {
		t.Error(got)
	}
}
