// SPDX-License-Identifier: Apache-2.0

package values

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/helm/document"
)

// Redacted replaces secret values.
const Redacted = "(redacted)"

// shortest is the minimal length of a secret string, in bytes: shorter ones, such as a number of replicas, occur in many
// words.
const shortest = 4

// Scrubber removes values of Secrets from messages. The zero value, and nil, remove nothing.
type Scrubber struct {
	secret map[string]bool
	known  map[string]bool
	order  []string        // of secret, the longest first; nil when it has to be sorted again
	former map[string]bool // former secret strings
	// whole: there are too many secret strings, so messages are withheld; formerly: there were before.
	whole, formerly bool
}

// mostSecrets bounds the strings that a Scrubber looks for.
const mostSecrets = 20_000

// withheld replaces a message when there are too many secret strings.
const withheld = "(withheld: the Secrets of the inputs hold too many values to be redacted in a message)"

// Public excludes strings that are not secret although Secrets contain them, such as names of objects.
func (s *Scrubber) Public(texts ...string) {
	if s.known == nil {
		s.known = map[string]bool{}
	}
	for _, text := range texts {
		s.known[text] = true
	}
}

// Add makes a string secret, in all forms in which messages quote it: unchanged, each line of it, in base64, and with the
// escapes of Go, JSON and YAML.
func (s *Scrubber) Add(text string) {
	if strings.Count(text, "\n") > mostSecrets {
		s.add(text)
		s.whole = s.whole || len(text) >= shortest
		return
	}
	for _, part := range append([]string{text, strings.TrimSpace(text)}, strings.Split(text, "\n")...) {
		part = strings.TrimRight(part, "\r")
		s.add(part)
		s.add(strings.TrimSpace(part))
		s.add(strings.TrimSuffix(strings.TrimPrefix(strconv.Quote(part), `"`), `"`))
		if quoted, err := json.Marshal(part); err == nil {
			s.add(strings.Trim(string(quoted), `"`))
		}
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		s.add(encoding.EncodeToString([]byte(text)))
		s.add(encoding.EncodeToString([]byte(strings.TrimSpace(text))))
	}
}

// AddDocument makes all values of a document secret, but not their names; if it is not a valid document, all of its
// lines.
func (s *Scrubber) AddDocument(text string) {
	read, problem := document.Read([]byte(text))
	if problem != "" {
		s.Add(text)
		return
	}
	s.addLeaves(read)
}

// addLeaves makes all scalar values secret.
func (s *Scrubber) addLeaves(value any) {
	switch typed := value.(type) {
	case map[string]any:
		for _, inner := range typed {
			s.addLeaves(inner)
		}
	case []any:
		for _, inner := range typed {
			s.addLeaves(inner)
		}
	case string:
		s.Add(typed)
	case float64:
		s.add(strconv.FormatFloat(typed, 'f', -1, 64))
		s.add(fmt.Sprint(typed))
	}
}

func (s *Scrubber) add(text string) {
	if len(text) < shortest || s.known[text] || text == "true" || text == "false" || text == "null" {
		return
	}
	if s.secret == nil {
		s.secret = map[string]bool{}
	}
	if len(s.secret) >= mostSecrets {
		s.whole = true
		return
	}
	s.secret[text], s.order = true, nil
}

// After also removes the strings of a former scrubber, but not those that the former one inherited.
func (s *Scrubber) After(former *Scrubber) {
	if former == nil {
		return
	}
	s.former, s.order = former.secret, nil
	s.formerly = former.whole
	if maps.Equal(s.secret, former.secret) {
		s.former = former.former
	}
}

// Empty tells that there are no secret strings.
func (s *Scrubber) Empty() bool { return s == nil || len(s.secret) == 0 }

// Text returns a string without secret values. It is not safe for concurrent use.
func (s *Scrubber) Text(text string) string {
	if s.Empty() || text == "" {
		return text
	}
	if s.whole || s.formerly {
		return withheld
	}
	for _, secret := range s.sorted() {
		text = withoutBeginning(strings.ReplaceAll(text, secret, Redacted), secret)
	}
	return text
}

// telling is the minimal length of the beginning of a secret, in bytes, that is removed from a truncated message.
const telling = 12

// withoutBeginning removes the beginning of a secret from a truncated message: where the end, an ellipsis or a quotation
// mark follows.
func withoutBeginning(text, secret string) string {
	if len(secret) <= telling {
		return text
	}
	for from := 0; ; {
		at := strings.Index(text[from:], secret[:telling])
		if at < 0 {
			return text
		}
		at += from
		end := at + telling
		for end < len(text) && end-at < len(secret) && text[end] == secret[end-at] {
			end++
		}
		from = end
		if rest := strings.TrimLeft(text[end:], " \n"); rest == "" || strings.HasPrefix(rest, "…") || strings.HasPrefix(rest, "...") || strings.IndexAny(rest, "\"'`") == 0 {
			text = text[:at] + Redacted + text[end:]
			from = at + len(Redacted)
		}
	}
}

// sorted returns the longest first, so that a secret that contains another one is removed as a whole.
func (s *Scrubber) sorted() []string {
	if s.order == nil {
		for text := range s.secret {
			s.order = append(s.order, text)
		}
		for text := range s.former {
			s.order = append(s.order, text)
		}
		slices.SortFunc(s.order, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
		})
	}
	return s.order
}

// Error returns an error without secret values in its message; errors.As still finds the wrapped error, with its
// original message.
func (s *Scrubber) Error(err error) error {
	if err == nil || s.Empty() {
		return err
	}
	text := err.Error()
	if clean := s.Text(text); clean != text {
		return &scrubbed{text: clean, err: err}
	}
	return err
}

// scrubbed is an error with another message.
type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }

func (e *scrubbed) Unwrap() error { return e.err }
