// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// place is the position of a comparison in a schema; nil is the root. It is formatted only
// for findings: the paths of all fields together may be far larger than
// the CRD.
type place struct {
	above *place
	name  string
}

func (p *place) child(name string) *place { return &place{p, name} }

// top is the field of the resource that the place is in; empty for the root.
func (p *place) top() string {
	top := ""
	for ; p != nil; p = p.above {
		top = p.name
	}
	return top
}

// longestPath bounds a path in a message: the middle of longer ones is left
// out.
const longestPath, firstOfPath = 200, 60

// String is the path for people: .spec.size, and . for the root.
func (p *place) String() string {
	if p == nil {
		return "."
	}
	var parts []string
	for ; p != nil; p = p.above {
		parts = append(parts, step(p.name))
	}
	slices.Reverse(parts)
	text := strings.Join(parts, "")
	if len(text) > longestPath {
		const mark = "..."
		text = text[:firstOfPath] + mark + text[len(text)-(longestPath-firstOfPath-len(mark)):]
	}
	return text
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_$-]+$`)

// step is a name in a path, all ASCII.
func step(name string) string {
	if plain.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.QuoteToASCII(name) + "]"
}

// longestWords bounds the description of one change: patterns and enumerations
// come from the bundle.
const longestWords = 200

// words puts a message on one line, removes invisible characters and bounds it.
func words(message string) string {
	message = message[:min(len(message), 4*longestWords)] // the rest need not be looked at
	message = strings.ReplaceAll(strings.Join(strings.Fields(message), " "), " : ", ": ")
	message = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return unicode.ReplacementChar
		}
		return c
	}, message)
	if len(message) > longestWords {
		message = strings.ToValidUTF8(message[:longestWords], "") + "..."
	}
	return message
}
