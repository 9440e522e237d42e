// SPDX-License-Identifier: Apache-2.0

// Package message makes what charts and Helm's library say fit for messages: short, in one line, printable, and without values.
package message

import (
	"regexp"
	"strings"
	"unicode"
)

// Rule is the rule of problems that are of charts, as Problem.Rule.
const Rule = "helm"

// Quoted are parts of the library's messages that may be values of a file.
var Quoted = regexp.MustCompile("(?s)`.*`|\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*'")

// MaxQuoted bounds what a message quotes.
const MaxQuoted = 200

// Shorten keeps a text from spoiling a message.
func Shorten(text string) string { return Cut(text, MaxQuoted) }

// Cut cuts a string that is longer.
func Cut(text string, longest int) string {
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// OneLine joins the lines of a text.
func OneLine(text string) string { return strings.Join(strings.Fields(Printable(text)), " ") }

// Printable takes away what could not be shown.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
