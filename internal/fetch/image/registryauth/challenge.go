// SPDX-License-Identifier: Apache-2.0

package registryauth

import (
	"net/http"
	"strings"
)

// challenge is what a server wants to see before it answers (RFC 9110 section 11.6.1).
type challenge struct {
	scheme string // in lower case
	params map[string]string
}

// maxChallenges bounds what is read of an answer.
const maxChallenges = 16

// challengeOf returns the challenge to answer: one that asks for a token, because the registry then receives a short-lived
// token for this repository only, or else one for user name and password.
func challengeOf(header http.Header) (challenge, bool) {
	basic, found := challenge{}, false
	for _, line := range header.Values("WWW-Authenticate") {
		for _, c := range parseChallenges(line) {
			switch {
			case c.scheme == "bearer" && c.params["realm"] != "":
				return c, true
			case c.scheme == "basic":
				basic, found = c, true
			}
		}
	}
	return basic, found
}

// parseChallenges reads as much of a header as is well-formed.
func parseChallenges(text string) []challenge {
	var found []challenge
	for rest := skip(text); rest != "" && len(found) < maxChallenges; rest = skip(rest) {
		var word string
		if word, rest = token(rest); word == "" {
			break
		}
		c := challenge{scheme: strings.ToLower(word), params: map[string]string{}}
		rest = c.parameters(strings.TrimLeft(rest, " \t"))
		found = append(found, c)
	}
	return found
}

// parameters reads what follows the name of a scheme, and returns the rest, from the next scheme on. The first of
// several parameters with one name counts, and what is no parameter is passed over.
func (c challenge) parameters(rest string) string {
	for {
		name, after := token(rest)
		after = strings.TrimLeft(after, " \t")
		if name == "" || !strings.HasPrefix(after, "=") {
			return rest
		}
		value, after, ok := parameter(strings.TrimLeft(after[1:], " \t"))
		if !ok {
			_, rest, _ = strings.Cut(after, ",")
			return rest
		}
		name = strings.ToLower(name)
		if _, known := c.params[name]; !known {
			c.params[name] = value
		}
		rest = skip(after)
	}
}

// parameter reads the value of a parameter: a word, or a text in double quotes.
func parameter(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		value, rest = token(text)
		return value, rest, value != ""
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

// skip leaves out white space and commas.
func skip(text string) string { return strings.TrimLeft(text, " \t,") }

// token reads a word (RFC 9110 section 5.6.2), "" when there is none.
func token(text string) (word, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:]
}
