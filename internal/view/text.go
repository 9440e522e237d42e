// SPDX-License-Identifier: Apache-2.0

package view

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/internal/visible"
)

// Printable escapes characters that could control the terminal or mislead the reader. Line ends stay. Every string that comes
// from a bundle, a server or a status passes through here.
func Printable(text string) string { return strings.ReplaceAll(visible.Escape(text), "\t", " ") }

// Inline is printable in one line, with nothing left out: line ends are escaped like other hidden characters.
func Inline(text string) string { return visible.Line(strings.TrimSpace(text)) }

// LongestItem is how much of one string is shown, in characters.
const LongestItem = 2000

// Bounded is inline up to a length; it says how many characters there are more.
func Bounded(text string) string {
	runes := []rune(Inline(text))
	if len(runes) <= LongestItem {
		return string(runes)
	}
	return string(runes[:LongestItem]) + "… (" + Plural(len(runes)-LongestItem, "more character") + ")"
}

// OneLine makes a message fit a field: its first line, cut at limit characters (0: not cut).
func OneLine(text string, limit int) string {
	first, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(Printable(first))
	if limit > 0 && len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	if more {
		return string(runes) + " …"
	}
	return string(runes)
}

// ordinaryWord matches the words that rules of RBAC and of webhooks are made of.
var ordinaryWord = regexp.MustCompile(`^[A-Za-z0-9*_.:@/-]+$`)

// Word shows a word of a rule so that it cannot be misread as several words, another one or none: unusual words are quoted,
// with escapes.
func Word(text string) string {
	if ordinaryWord.MatchString(text) {
		return text
	}
	return strconv.QuoteToASCII(text)
}

// WordList shows words.
func WordList(texts []string) string {
	shown := make([]string, 0, len(texts))
	for _, text := range texts {
		shown = append(shown, Word(text))
	}
	return strings.Join(shown, ", ")
}

// ShellWord quotes a string for a command line where that is needed.
func ShellWord(text string) string {
	if ordinaryWord.MatchString(text) && !strings.Contains(text, "*") {
		return text
	}
	return "'" + strings.ReplaceAll(Inline(text), "'", `'\''`) + "'"
}
