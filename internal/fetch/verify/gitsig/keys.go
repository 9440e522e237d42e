// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshkey"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

var errPrivate = errors.New("it holds a private key: give the public one only, and consider that one known to others")

// ParseKeys reads the entries of a Secret by name. Each is one of
//
//	PGP public keys, armored (*.asc) or not (*.gpg)
//	lines of SSH public keys (*.pub, authorized_keys): "keytype key comment"
//	lines of an allowed signers file (ssh-keygen(1)): "principals options keytype key comment"
//
// told apart by their content. One that cannot be read refuses all, since what it would have said is not known.
func ParseKeys(entries map[string][]byte) (Keys, error) {
	all := Keys{lock: &sync.Mutex{}}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		var found Keys
		err := verify.Guard(func() (err error) {
			found, err = parseEntry(name, entries[name])
			return err
		})
		if err != nil {
			return Keys{}, fetch.Errorf(fetch.Refused, "entry %s: %w", fetch.Quote(name), err)
		}
		all.pgp, all.ssh = append(all.pgp, found.pgp...), append(all.ssh, found.ssh...)
	}
	if len(all.pgp)+len(all.ssh) == 0 {
		return Keys{}, fetch.Errorf(fetch.Refused, "%w: there are no keys", verify.ErrNoTrust)
	}
	return all, all.checkTwice()
}

// checkTwice refuses two copies of a PGP key: one may be revoked in one of them only.
func (k Keys) checkTwice() error {
	seen := map[string]bool{}
	for _, entity := range k.pgp {
		fingerprint := string(entity.PrimaryKey.Fingerprint)
		if seen[fingerprint] {
			return fetch.Errorf(fetch.Refused, "the PGP key %X is there twice: keep the newer copy", fingerprint)
		}
		seen[fingerprint] = true
	}
	return nil
}

// privateKey matches the first line of a private key, of whatever kind.
var privateKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----`)

func parseEntry(name string, content []byte) (k Keys, err error) {
	text := strings.TrimPrefix(string(content), "\ufeff")
	switch {
	case len(content) > verify.EntryBytes:
		return k, fmt.Errorf("it has more than %d bytes", verify.EntryBytes)
	case len(bytes.TrimSpace(content)) == 0:
		return k, errors.New("it is empty")
	case privateKey.MatchString(text):
		return k, errPrivate
	case strings.Contains(text, "-----BEGIN PGP "):
		k.pgp, err = readArmoredKeys(text)
	case !utf8.Valid(content):
		k.pgp, err = readKeys(content)
	default:
		k.ssh, err = readSigners(name, text)
	}
	if err == nil && len(k.pgp)+len(k.ssh) == 0 {
		err = errors.New("it has no public key, neither of PGP nor of SSH")
	}
	return k, err
}

// readSigners reads lines of SSH keys.
func readSigners(name, text string) ([]signer, error) {
	var found []signer
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		one, err := readSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		one.principal = cmp.Or(one.principal, name)
		found = append(found, one)
	}
	return found, nil
}

var errLine = errors.New(`it is neither "keytype key comment" nor "principals options keytype key"`)

// readSigner reads one line, in which the type of the key stands first, second or third.
func readSigner(line string) (signer, error) {
	words := words(line)
	at := slices.IndexFunc(words[:min(len(words), 3)], isKeyType)
	if at < 0 || len(words) < at+2 {
		return signer{}, errLine
	}
	blob, err := base64.StdEncoding.DecodeString(words[at+1])
	if err != nil {
		return signer{}, errLine
	}
	s := signer{}
	if s.key, err = ssh.ParsePublicKey(blob); err != nil || s.key.Type() != words[at] {
		return signer{}, errLine
	}
	if err := sshkey.Check(s.key); err != nil {
		return signer{}, err
	}
	switch at {
	case 0: // a plain key, with a comment
		s.principal = strings.Join(words[2:], " ")
		return s, nil
	case 2:
		err = s.limit(words[1])
	}
	s.principal = strings.Trim(words[0], `"`)
	if strings.ContainsAny(s.principal, "=\"") || s.principal == "" || strings.EqualFold(s.principal, "cert-authority") {
		err = errors.New("it begins with options instead of principals")
	}
	return s, err
}

// isKeyType tells whether a word is the type of a key that signs.
func isKeyType(word string) bool {
	return slices.Contains([]string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
	}, word)
}

// words splits at spaces outside of quotes.
func words(line string) []string {
	quoted := false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t')
	})
}

// limit takes in the options of a line.
func (s *signer) limit(options string) error {
	quoted := false
	for _, option := range strings.FieldsFunc(options, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && r == ','
	}) {
		name, value, _ := strings.Cut(option, "=")
		value = strings.Trim(value, `"`)
		var err error
		switch strings.ToLower(name) {
		case "namespaces":
			s.namespaces = strings.Split(value, ",")
		case "valid-after":
			s.after, err = day(value)
		case "valid-before":
			s.before, err = day(value)
		default:
			err = fmt.Errorf("the option %s is not supported", verify.Text(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// day reads a time of an allowed signers file. Where OpenSSH takes the machine's time zone it is UTC here.
func day(text string) (time.Time, error) {
	plain := strings.TrimSuffix(text, "Z")
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if at, err := time.Parse(layout, plain); err == nil && len(plain) == len(layout) {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("the time %s is malformed: write YYYYMMDD", verify.Text(text))
}
