// SPDX-License-Identifier: Apache-2.0

package sshremote

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // how OpenSSH hides host names in this file; nothing is trusted for it
	"encoding/base64"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshkey"
)

// What known_hosts files contain.
const (
	DefaultSSHPort = "22"
	// Marks of lines in known_hosts (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
	authorityMark = "@cert-authority"
	revokedMark   = "@revoked"
)

// knownHosts are the host keys that the user trusts. Nothing is ever added to them.
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
	if port == DefaultSSHPort {
		return []string{host, withPort}
	}
	return []string{withPort}
}

// isFor tells whether a line is about a host.
func (k knownHost) isFor(name string) bool {
	if hashed, found := strings.CutPrefix(k.hosts[0], "|1|"); found {
		return matchesHash(hashed, name)
	}
	return sshkey.MatchAny(k.hosts, name)
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

// algorithms returns what host keys are asked for, those of certificates first; none when nothing usable is known.
func (k *knownHosts) algorithms(address string) []string {
	var certified, plain []string
	for _, line := range k.of(address) {
		switch {
		case sshkey.Check(line.key) != nil:
		case line.authority:
			certified = certificateAlgorithms
		default:
			plain = append(plain, sshkey.Algorithms(line.key.Type())...)
		}
	}
	return slices.Concat(certified, plain)
}

// certificateAlgorithms are all that an authority may have certified, without SHA-1.
var certificateAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
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
		if slices.ContainsFunc(k.revoked, func(r ssh.PublicKey) bool { return sshkey.Equal(r, one) }) {
			return fetch.Errorf(fetch.Unreachable, "the server's host key is not trusted: known_hosts has %s as revoked", sshkey.Show(one))
		}
		if err := sshkey.Check(one); err != nil {
			return fetch.Errorf(fetch.Refused, "the server's host key %s is not accepted: %w", sshkey.Show(one), err)
		}
	}
	if certified {
		return k.checkCertificate(address, remote, certificate)
	}
	for _, line := range k.of(address) {
		if !line.authority && sshkey.Equal(line.key, key) {
			return nil
		}
	}
	return fetch.Errorf(fetch.Unreachable, "the server's host key %s is not the one in known_hosts: it was changed, "+
		"or another server answers", sshkey.Show(key))
}

func (k *knownHosts) checkCertificate(address string, remote net.Addr, certificate *ssh.Certificate) error {
	if certificate.Signature.Format == ssh.KeyAlgoRSA || len(certificate.ValidPrincipals) == 0 {
		return fetch.Errorf(fetch.Refused, "the server's host certificate is signed with SHA-1, or names no host")
	}
	checker := ssh.CertChecker{IsHostAuthority: func(authority ssh.PublicKey, address string) bool {
		return slices.ContainsFunc(k.of(address), func(l knownHost) bool { return l.authority && sshkey.Equal(l.key, authority) })
	}}
	if err := checker.CheckHostKey(address, remote, certificate); err != nil {
		return fetch.Errorf(fetch.Unreachable, "the server's host certificate is not trusted: %s", fetch.Quote(err.Error()))
	}
	return nil
}
