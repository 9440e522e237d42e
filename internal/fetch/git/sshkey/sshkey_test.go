// SPDX-License-Identifier: Apache-2.0

package sshkey

import (
	"path"
	"strings"
	"testing"
)

func TestMatchAny(t *testing.T) {
	cases := map[string]struct {
		patterns, text string
		want           bool
	}{
		"Same":     {"git", "git", true},
		"Other":    {"file", "git", false},
		"Star":     {"*", "git", true},
		"Suffix":   {"*.org", "example.org", true},
		"Middle":   {"a*c*e", "abcde", true},
		"Question": {"g?t", "git", true},
		"Short":    {"g?t", "gt", false},
		"Back":     {"*ab", "aab", true},
		"Negated":  {"*,!git", "git", false},
		"OnlyNot":  {"!file", "git", false},
		"Nothing":  {"", "git", false},
		"NoText":   {"*", "", true},
		"Brackets": {"[a-z]it", "git", false},
		"Costly":   {strings.Repeat("*a", 5000) + "b", strings.Repeat("a", 5000), false},
	}
	for name, tc := range cases {
		if got := MatchAny(strings.Split(tc.patterns, ","), tc.text); got != tc.want {
			t.Errorf("%s: %.40s and %.40s: %v", name, tc.patterns, tc.text, got)
		}
	}
}

// FuzzMatch compares with the standard library where both mean the same.
func FuzzMatch(f *testing.F) {
	f.Add("*a?b", "xxayb")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.ContainsAny(pattern, `[]\`) || strings.Contains(text, "/") || strings.Trim(pattern+text, "abcdefghijklmnopqrstuvwxyz*?.") != "" ||
			strings.Count(pattern, "*") > 8 {
			return
		}
		want, err := path.Match(pattern, text)
		if got := match(pattern, text); err == nil && got != want {
			t.Errorf("%q and %q: %v", pattern, text, got)
		}
	})
}
