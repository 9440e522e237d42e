// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestM18KnownHosts(t *testing.T) {
	host, other, authority := newKey(t, "ed25519"), newKey(t, "ed25519"), newKey(t, "ecdsa")
	rsa, small := newKey(t, "rsa2048"), newKey(t, "rsa1024")
	past := func(c *ssh.Certificate) { c.ValidBefore = uint64(time.Now().Add(-time.Hour).Unix()) }
	future := func(c *ssh.Certificate) { c.ValidAfter = uint64(time.Now().Add(time.Hour).Unix()) }
	elsewhere := func(c *ssh.Certificate) { c.ValidPrincipals = []string{"example.org"} }
	nowhere := func(c *ssh.Certificate) { c.ValidPrincipals = nil }
	user := func(c *ssh.Certificate) { c.CertType = ssh.UserCert }
	option := func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"verify-required": ""} }
	sha1, err := ssh.NewSignerWithAlgorithms(rsa.Signer.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	trusted := func(key keyPair) string { return "@cert-authority " + knownLine(key.PublicKey(), "[127.0.0.1]:*") }
	const name = "[127.0.0.1]:PORT"
	cases := map[string]struct {
		reason, known, text string
		server              ssh.Signer
		want                fetch.Reason
	}{
		"Known":          {"the normal case", knownLine(host.PublicKey(), name), "", host, ""},
		"RSA":            {"an older one", knownLine(rsa.PublicKey(), name), "", rsa, ""},
		"SeveralNames":   {"one of them", knownLine(host.PublicKey(), "example.org", name), "", host, ""},
		"Wildcard":       {"a pattern", knownLine(host.PublicKey(), "[127.0.?.*]:*"), "", host, ""},
		"Hashed":         {"as ssh-keyscan -H writes it", knownLine(host.PublicKey(), "HASHED"), "", host, ""},
		"Rotation":       {"the old and the new one", knownLine(other.PublicKey(), name) + knownLine(host.PublicKey(), name), "", host, ""},
		"OtherType":      {"the server has more keys than we know", knownLine(rsa.PublicKey(), name), "no host key of the types", host, fetch.Unreachable},
		"Wrong":          {"a man in the middle", knownLine(other.PublicKey(), name), "not the one in known_hosts", host, fetch.Unreachable},
		"Revoked":        {"known and revoked", knownLine(host.PublicKey(), name) + "@revoked " + knownLine(host.PublicKey(), "*"), "as revoked", host, fetch.Unreachable},
		"RevokedElse":    {"revoked under another name", knownLine(host.PublicKey(), name) + "@revoked " + knownLine(host.PublicKey(), "example.org"), "as revoked", host, fetch.Unreachable},
		"Weak":           {"an RSA key of 1024 bits", knownLine(small.PublicKey(), name), "1024 bits", small, fetch.Refused},
		"WeakBeside":     {"only the weak one of two is the server's", knownLine(small.PublicKey(), name) + knownLine(rsa.PublicKey(), name), "1024 bits", small, fetch.Refused},
		"Empty":          {"no trust at first sight", "", "has no keys in it", host, fetch.Refused},
		"Comment":        {"no trust at first sight", "# example.org\n\n", "has no keys in it", host, fetch.Refused},
		"OtherHost":      {"another host is known", knownLine(host.PublicKey(), "example.org"), "has no key of [127.0.0.1]:", host, fetch.Refused},
		"OtherPort":      {"another port is known", knownLine(host.PublicKey(), "[127.0.0.1]:1"), "has no key of", host, fetch.Refused},
		"NoPort":         {"the usual port is known", knownLine(host.PublicKey(), "127.0.0.1"), "has no key of", host, fetch.Refused},
		"Negated":        {"excepted from a pattern", knownLine(host.PublicKey(), "*", "!"+name), "has no key of", host, fetch.Refused},
		"OnlyRevoked":    {"nothing else is known", "@revoked " + knownLine(host.PublicKey(), name), "has no keys in it", host, fetch.Refused},
		"Malformed":      {"the line is named", "# x\n" + name + " ssh-ed25519 CANARY\n" + knownLine(host.PublicKey(), name), "known_hosts, line 2", host, fetch.Refused},
		"Mark":           {"an unknown one", "@trusted " + knownLine(host.PublicKey(), name), "known_hosts, line 1", host, fetch.Refused},
		"TwoMarks":       {"contradictory", "@revoked @cert-authority " + knownLine(host.PublicKey(), name), "known_hosts, line 1", host, fetch.Refused},
		"TypeLies":       {"the type and the key differ", strings.Replace(knownLine(host.PublicKey(), name), "ssh-ed25519", "ssh-rsa", 1), "known_hosts, line 1", host, fetch.Refused},
		"HashLies":       {"a hash that is none", knownLine(host.PublicKey(), "|1|???|???"), "has no key of", host, fetch.Refused},
		"Certified":      {"an authority", trusted(authority), "", host.certificate(t, authority, nil), ""},
		"CertifiedAndBy": {"the key of an authority is no host key", trusted(host), "no host key of the types", host, fetch.Unreachable},
		"NotAuthority":   {"the key of a host certifies nothing", knownLine(authority.PublicKey(), name), "no host key of the types", host.certificate(t, authority, nil), fetch.Unreachable},
		"OtherAuthority": {"it is not trusted", trusted(other), "no authorities", host.certificate(t, authority, nil), fetch.Unreachable},
		"Expired":        {"no longer valid", trusted(authority), "expired", host.certificate(t, authority, past), fetch.Unreachable},
		"Future":         {"not valid yet", trusted(authority), "not yet valid", host.certificate(t, authority, future), fetch.Unreachable},
		"Principal":      {"for another host", trusted(authority), "principal", host.certificate(t, authority, elsewhere), fetch.Unreachable},
		"NoPrincipal":    {"for any host", trusted(authority), "names no host", host.certificate(t, authority, nowhere), fetch.Refused},
		"UserCert":       {"for a person", trusted(authority), "type 1", host.certificate(t, authority, user), fetch.Unreachable},
		"Option":         {"a condition that we do not know", trusted(authority), "critical option", host.certificate(t, authority, option), fetch.Unreachable},
		"SHA1":           {"certified with SHA-1", trusted(rsa), "SHA-1", host.certificate(t, sha1, nil), fetch.Refused},
		"WeakCertified":  {"a certified key of 1024 bits", trusted(authority), "1024 bits", small.certificate(t, authority, nil), fetch.Refused},
		"WeakAuthority":  {"an authority of 1024 bits", trusted(small), "only key of [127.0.0.1]:", host.certificate(t, small, nil), fetch.Refused},
		"RevokedCA":      {"the authority is revoked", trusted(authority) + "@revoked " + knownLine(authority.PublicKey(), "*"), "as revoked", host.certificate(t, authority, nil), fetch.Unreachable},
		"RevokedKey":     {"the certified key is revoked", trusted(authority) + "@revoked " + knownLine(host.PublicKey(), "*"), "as revoked", host.certificate(t, authority, nil), fetch.Unreachable},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			server := newSSHServer(t, tc.server)
			server.serve = advertiser
			known := strings.ReplaceAll(tc.known, "[127.0.0.1]:PORT", knownhosts.Normalize(server.address))
			known = strings.ReplaceAll(known, "HASHED", knownhosts.HashHostname(knownhosts.Normalize(server.address)))
			err := reach(t, server.options(t, "/r", known))
			// The server has no HEAD: this error means that the host key was accepted.
			if tc.want == "" && fetch.ReasonOf(err) == fetch.NotFound && strings.Contains(err.Error(), "no default branch") {
				return
			}
			if fetch.ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
