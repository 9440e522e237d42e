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
)

// Redacted stands where something secret was.
const Redacted = "(redacted)"

// shortest is how long, in bytes, a text has to be to be secret: what is shorter, such as a number of replicas, is part of
// many words.
const shortest = 4

// Scrubber takes what came from Secrets out of texts. The zero value, and nil, take nothing out.
type Scrubber struct {
	secret map[string]bool
	known  map[string]bool
	order  []string        // of secret, the longest first; nil when it has to be made anew
	former map[string]bool // was secret before
	// There is too much to look for, so that nothing is told at all; or there was before.
	whole, formerly bool
}

// mostSecrets are how many texts a Scrubber looks for.
const mostSecrets = 20_000

// withheld stands in the place of a text, where there is too much to look for in it.
const withheld = "(withheld: the Secrets that this is made of hold too much to be looked for in a message)"

// Public says that texts are no secrets, although Secrets contain them: names that everybody knows anyway.
func (s *Scrubber) Public(texts ...string) {
	if s.known == nil {
		s.known = map[string]bool{}
	}
	for _, text := range texts {
		s.known[text] = true
	}
}

// Add makes a text secret, in all of the forms in which messages quote it: as it is, each line of it, in base64, and with
// what Go, JSON and YAML escape.
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

// AddDocument makes all that a document of values contains secret, but for the names; all of its lines where it is none.
func (s *Scrubber) AddDocument(text string) {
	read, problem := Read([]byte(text))
	if problem != "" {
		s.Add(text)
		return
	}
	s.addLeaves(read)
}

// addLeaves makes all that values contain secret, but for their names.
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

// After makes what another scrubber takes out secret as well; what that one took over itself does not last.
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

// Empty tells that there is nothing to take out.
func (s *Scrubber) Empty() bool { return s == nil || len(s.secret) == 0 }

// Text is a text without what is secret. Not for several goroutines at once.
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

// telling is how long the beginning of a secret is, in bytes, that is taken out of a text that was cut.
const telling = 12

// withoutBeginning takes out what a text that was cut has left of a secret: its beginning, where nothing or an ellipsis or a
// quotation mark follows.
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

// sorted begins with the longest, so that a secret that contains another one goes as a whole.
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

// Error is an error whose text has nothing secret; what it wraps is found by errors.As as before, and has its own text.
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

// scrubbed is an error with another text.
type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }

func (e *scrubbed) Unwrap() error { return e.err }
