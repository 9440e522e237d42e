// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signed is a commit or tag object taken apart at its signature. Both parts are bytes of the object as it stands: nothing
// is ever put together again from what was understood of it.
type signed struct {
	fields    []field
	payload   []byte // what was signed
	signature []byte // armored
	when      time.Time
}

// field is one line of the header, with those that continue it.
type field struct {
	key, value string
	from, to   int // in the object
}

// Headers that can hold signatures. A commit has one for each kind of object name that its repository has.
const (
	signatureHeader = "gpgsig"
	otherSignatures = "gpgsig-" // and the kind of object name
)

// openCommit takes a commit object apart (gitformat-signature(5)). An object that could be read in two ways is refused.
func openCommit(raw []byte) (*signed, error) {
	fields, _, err := header(raw)
	if err != nil {
		return nil, err
	}
	if err := checkOrder(fields, []string{"tree", "parent*", "author", "committer"}, true); err != nil {
		return nil, err
	}
	s := &signed{fields: fields}
	for _, f := range fields {
		switch {
		case f.key == signatureHeader && s.signature != nil:
			return nil, fmt.Errorf("it has two signatures")
		case f.key == signatureHeader:
			s.signature = []byte(f.value + "\n")
			s.payload = slices.Concat(raw[:f.from], raw[f.to:])
		case strings.HasPrefix(f.key, otherSignatures):
			return nil, fmt.Errorf("it has a header %q, which is not supported", f.key)
		}
	}
	if s.signature == nil {
		return nil, errUnsigned
	}
	s.when, err = moment(s.field("committer"))
	return s, err
}

// openTag takes a tag object apart: the signature stands at the end of the message.
func openTag(raw []byte) (*signed, error) {
	fields, body, err := header(raw)
	if err != nil {
		return nil, err
	}
	if err := checkOrder(fields, []string{"object", "type", "tag", "tagger"}, false); err != nil {
		return nil, err
	}
	at, err := signatureAt(raw[body:])
	if err != nil {
		return nil, err
	}
	s := &signed{fields: fields, payload: raw[:body+at], signature: raw[body+at:]}
	s.when, err = moment(s.field("tagger"))
	return s, err
}

// field returns the value of a header.
func (s *signed) field(key string) string {
	for _, f := range s.fields {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// header reads "<key> <value>" up to an empty line, and returns where that ends. A line that begins with a space continues
// the one before it.
func header(raw []byte) (fields []field, end int, err error) {
	if bytes.IndexByte(raw, 0) >= 0 {
		return nil, 0, fmt.Errorf("it has a NUL in it")
	}
	for at := 0; ; {
		length := bytes.IndexByte(raw[at:], '\n')
		switch {
		case length < 0:
			return nil, 0, fmt.Errorf("its header does not end")
		case length == 0:
			return fields, at + 1, nil
		}
		line, next := string(raw[at:at+length]), at+length+1
		if strings.Contains(line, "\r") {
			return nil, 0, fmt.Errorf("its header has a carriage return in it")
		}
		if rest, continues := strings.CutPrefix(line, " "); continues {
			if len(fields) == 0 {
				return nil, 0, fmt.Errorf("its header begins with a space")
			}
			last := &fields[len(fields)-1]
			last.value, last.to = last.value+"\n"+rest, next
		} else {
			key, value, found := strings.Cut(line, " ")
			if !found || key == "" {
				return nil, 0, fmt.Errorf("its header has a line without a value")
			}
			fields = append(fields, field{key, value, at, next})
		}
		at = next
	}
}

// checkOrder wants the known headers in their order, each once; one with a star any number of times, and the last one of a
// tag may be missing. Commits may have others after them.
func checkOrder(fields []field, known []string, others bool) error {
	at := 0
	for _, name := range known {
		key, many := strings.CutSuffix(name, "*")
		count := 0
		for ; at < len(fields) && fields[at].key == key && (many || count == 0); at++ {
			if strings.Contains(fields[at].value, "\n") {
				return fmt.Errorf("its header %q has several lines", key)
			}
			count++
		}
		if count == 0 && !many && key != "tagger" {
			return fmt.Errorf("its header %q is not where it belongs", key)
		}
	}
	for _, f := range fields[at:] {
		if !others || slices.ContainsFunc(known, func(name string) bool { return strings.TrimSuffix(name, "*") == f.key }) {
			return fmt.Errorf("its header %q is not where it belongs", f.key)
		}
	}
	return nil
}

// beginnings of lines that begin a signature, in what git takes for one.
var beginnings = []string{
	"-----BEGIN PGP SIGNATURE-----", "-----BEGIN PGP MESSAGE-----", "-----BEGIN SSH SIGNATURE-----", "-----BEGIN SIGNED MESSAGE-----",
}

// signatureAt returns where in a message the only signature begins.
func signatureAt(message []byte) (int, error) {
	found, at := -1, 0
	for line := range bytes.Lines(message) {
		begins := func(text string) bool { return bytes.HasPrefix(line, []byte(text)) }
		if slices.ContainsFunc(beginnings, begins) {
			if found >= 0 {
				return 0, fmt.Errorf("it has two signatures")
			}
			found = at
		}
		at += len(line)
	}
	if found < 0 {
		return 0, errUnsigned
	}
	return found, nil
}

// moment reads the time in "Name <mail> 1767225600 +0000".
func moment(who string) (time.Time, error) {
	words := strings.Fields(who)
	if len(words) < 2 {
		return time.Time{}, fmt.Errorf("it does not say when it was made")
	}
	seconds, err := strconv.ParseInt(words[len(words)-2], 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("it does not say when it was made")
	}
	return time.Unix(seconds, 0), nil
}
