// SPDX-License-Identifier: Apache-2.0

package sshremote

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// testKey is a key in the form of known_hosts.
const testKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"

func TestM18HostNames(t *testing.T) {
	cases := map[string]struct {
		pattern, address string
		want             bool
	}{
		"Usual":      {"example.org", "example.org:22", true},
		"Bracketed":  {"[example.org]:22", "example.org:22", true},
		"Case":       {"Example.ORG", "EXAMPLE.org:22", true},
		"Port":       {"[example.org]:2222", "example.org:2222", true},
		"NotAnyPort": {"example.org", "example.org:2222", false},
		"IPv6":       {"2001:db8::1", "[2001:db8::1]:22", true},
		"IPv6Port":   {"[2001:db8::1]:7999", "[2001:db8::1]:7999", true},
		"Suffix":     {"*.example.org", "git.example.org:22", true},
		"NotItself":  {"*.example.org", "example.org:22", false},
		"Longer":     {"example.org", "example.org.evil.net:22", false},
		"Question":   {"git?.example.org", "git1.example.org:22", true},
		"Negation":   {"*.example.org,!git.example.org", "git.example.org:22", false},
		"OnlyNot":    {"!git.example.org", "other.example.org:22", false},
		"Costly":     {strings.Repeat("*a", 500) + "b", strings.Repeat("a", 250) + ":22", false},
	}
	for name, tc := range cases {
		known, err := parseKnownHosts([]byte(tc.pattern + " " + testKey))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(known.of(tc.address)) == 1; got != tc.want {
			t.Errorf("%s: %s is for %s: %v", name, tc.pattern, tc.address, got)
		}
	}
}

// FuzzKnownHosts compares with the library's reader, which needs a file and knows fewer patterns with ports.
func FuzzKnownHosts(f *testing.F) {
	const key = testKey
	for _, line := range []string{
		"example.org " + key, "*.org,!example.org " + key, "@revoked example.org " + key, "@cert-authority * " + key,
		"[example.org]:22 " + key, knownhosts.HashHostname("example.org") + " " + key, "x", "@ " + key, "# " + key,
	} {
		f.Add(line)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Fields(key)[1])
	if err != nil {
		f.Fatal(err)
	}
	public, err := ssh.ParsePublicKey(raw)
	if err != nil {
		f.Fatal(err)
	}
	file := filepath.Join(f.TempDir(), "known_hosts")
	f.Fuzz(func(t *testing.T, text string) {
		known, err := parseKnownHosts([]byte(text))
		if err != nil {
			return
		}
		const address = "example.org:22"
		accepted := known.check(address, nil, public) == nil
		if !accepted || strings.ContainsAny(text, "|[]\r\x00") || len(text) > 10_000 {
			return
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		callback, err := knownhosts.New(file)
		if err != nil {
			return
		}
		if err := callback(address, fakeAddress("192.0.2.1:22"), public); err != nil {
			t.Errorf("accepted %q, which the library refuses: %v", text, err)
		}
	})
}

// fakeAddress is where a server is said to be.
type fakeAddress string

func (fakeAddress) Network() string  { return "tcp" }
func (a fakeAddress) String() string { return string(a) }
