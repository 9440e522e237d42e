// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"crypto/dsa" //nolint:staticcheck // such keys are recognised to be refused
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // how OpenSSH hides host names in this file; nothing is trusted for it
	"encoding/base64"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	defaultSSHPort = "22"
	// leastRSABits is the size below which RSA keys are refused.
	leastRSABits = 2048
	// Marks of lines in known_hosts (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
	authorityMark = "@cert-authority"
	revokedMark   = "@revoked"
)

// knownHosts are the host keys that somebody trusts. Nothing is ever added to them.
type knownHosts struct {
	lines   []knownHost
	revoked []ssh.PublicKey
}

// knownHost is one line: a key, and the hosts that have it or, for an authority, certificates from it.
type knownHost struct {
	hosts     []string // patterns, or one hashed name
	key       ssh.PublicKey
	authority bool
}

// parseKnownHosts reads a known_hosts file. A line that is malformed is refused by its number, since what it revokes, or
// whom it trusts, is not known.
func parseKnownHosts(text []byte) (*knownHosts, error) {
	known := &knownHosts{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if !known.add(fields) {
			return nil, fetch.Errorf(fetch.Refused, "known_hosts, line %d: it is not of the form \"host keytype key\" "+
				"with a key of a supported type", number)
		}
	}
	if len(known.lines) == 0 {
		return nil, fetch.Errorf(fetch.Refused, "known_hosts has no keys in it, and a server's key is never trusted at first sight: "+
			"add what ssh-keyscan prints for the host, after comparing it with what its owner publishes")
	}
	return known, nil
}

// add takes in the fields of a line: [mark] hosts type key [comment].
func (k *knownHosts) add(fields []string) bool {
	mark := ""
	if strings.HasPrefix(fields[0], "@") {
		mark, fields = fields[0], fields[1:]
	}
	if len(fields) < 3 || strings.HasPrefix(fields[0], "@") {
		return false
	}
	blob, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil {
		return false
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil || key.Type() != fields[1] {
		return false
	}
	hosts := strings.Split(strings.ToLower(fields[0]), ",")
	if strings.HasPrefix(fields[0], "|") {
		hosts = fields[:1]
	}
	switch mark {
	case revokedMark:
		k.revoked = append(k.revoked, key)
	case authorityMark:
		k.lines = append(k.lines, knownHost{hosts, key, true})
	case "":
		k.lines = append(k.lines, knownHost{hosts, key, false})
	default:
		return false
	}
	return true
}

// of returns the lines about a host.
func (k *knownHosts) of(address string) []knownHost {
	var found []knownHost
	for _, line := range k.lines {
		if slices.ContainsFunc(hostNames(address), line.isFor) {
			found = append(found, line)
		}
	}
	return found
}

// hostNames returns how known_hosts calls an address: without the usual port, or with any.
func hostNames(address string) []string {
	host, port, err := net.SplitHostPort(strings.ToLower(address))
	if err != nil {
		return nil
	}
	withPort := "[" + host + "]:" + port
	if port == defaultSSHPort {
		return []string{host, withPort}
	}
	return []string{withPort}
}

// isFor tells whether a line is about a host. A pattern that is negated and matches beats the others.
func (k knownHost) isFor(name string) bool {
	if hashed, found := strings.CutPrefix(k.hosts[0], "|1|"); found {
		return matchesHash(hashed, name)
	}
	found := false
	for _, pattern := range k.hosts {
		positive, negated := strings.CutPrefix(pattern, "!")
		if matchesPattern(positive, name) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// matchesHash compares a name with "<salt>|<HMAC-SHA1 of the name>".
func matchesHash(hashed, name string) bool {
	salt, sum, _ := strings.Cut(hashed, "|")
	key, err := base64.StdEncoding.DecodeString(salt)
	if err != nil {
		return false
	}
	want, err := base64.StdEncoding.DecodeString(sum)
	if err != nil {
		return false
	}
	mac := hmac.New(sha1.New, key)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), want)
}

// matchesPattern matches * and ?. It goes back to the last * only, so that no pattern is costly.
func matchesPattern(pattern, name string) bool {
	at, star, tried := 0, -1, 0
	for i := 0; i < len(name); {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			star, tried, at = at, i, at+1
		case at < len(pattern) && (pattern[at] == '?' || pattern[at] == name[i]):
			at, i = at+1, i+1
		case star >= 0:
			tried++
			at, i = star+1, tried
		default:
			return false
		}
	}
	return strings.Trim(pattern[at:], "*") == ""
}

// algorithms returns what host keys are asked for, those of certificates first; none when nothing usable is known.
func (k *knownHosts) algorithms(address string) []string {
	var certified, plain []string
	for _, line := range k.of(address) {
		switch {
		case weak(line.key) != "":
		case line.authority:
			certified = certificateAlgorithms
		default:
			plain = append(plain, signatureAlgorithms(line.key.Type())...)
		}
	}
	return slices.Concat(certified, plain)
}

// certificateAlgorithms are all that an authority may have certified, without SHA-1.
var certificateAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// signatureAlgorithms returns how a key of some type signs, without SHA-1.
func signatureAlgorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// weak tells why a key is refused, "" when it is not.
func weak(key ssh.PublicKey) string {
	if certificate, ok := key.(*ssh.Certificate); ok {
		key = certificate.Key
	}
	cryptographic, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return "its type " + fetch.Quote(key.Type()) + " is not supported"
	}
	switch plain := cryptographic.CryptoPublicKey().(type) {
	case *rsa.PublicKey:
		if plain.N.BitLen() < leastRSABits {
			return "it is an RSA key of less than 2048 bits"
		}
	case *dsa.PublicKey:
		return "it is a DSA key"
	}
	return ""
}

// check decides about the key that a server shows.
//
//	revoked, itself or its authority          refused
//	too weak, itself or its authority         refused
//	a certificate of an authority for it      trusted when it is valid now and for that name
//	a key that is known for it                trusted
//	anything else                             not trusted
func (k *knownHosts) check(address string, remote net.Addr, key ssh.PublicKey) error {
	certificate, certified := key.(*ssh.Certificate)
	involved := []ssh.PublicKey{key}
	if certified {
		involved = []ssh.PublicKey{certificate.Key, certificate.SignatureKey}
	}
	for _, one := range involved {
		if slices.ContainsFunc(k.revoked, func(r ssh.PublicKey) bool { return equal(r, one) }) {
			return fetch.Errorf(fetch.Unreachable, "the server's host key is not trusted: known_hosts has %s as revoked", shown(one))
		}
		if why := weak(one); why != "" {
			return fetch.Errorf(fetch.Refused, "the server's host key %s is too weak: %s", shown(one), why)
		}
	}
	if certified {
		return k.checkCertificate(address, remote, certificate)
	}
	for _, line := range k.of(address) {
		if !line.authority && equal(line.key, key) {
			return nil
		}
	}
	return fetch.Errorf(fetch.Unreachable, "the server's host key %s is not the one in known_hosts: it was changed, "+
		"or somebody else answers", shown(key))
}

func (k *knownHosts) checkCertificate(address string, remote net.Addr, certificate *ssh.Certificate) error {
	if certificate.Signature.Format == ssh.KeyAlgoRSA || len(certificate.ValidPrincipals) == 0 {
		return fetch.Errorf(fetch.Refused, "the server's host certificate is signed with SHA-1, or names no host")
	}
	checker := ssh.CertChecker{IsHostAuthority: func(authority ssh.PublicKey, address string) bool {
		return slices.ContainsFunc(k.of(address), func(l knownHost) bool { return l.authority && equal(l.key, authority) })
	}}
	if err := checker.CheckHostKey(address, remote, certificate); err != nil {
		return fetch.Errorf(fetch.Unreachable, "the server's host certificate is not trusted: %s", fetch.Quote(err.Error()))
	}
	return nil
}

func equal(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// shown is a key as people compare it.
func shown(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }
