// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/internal/visible"
)

// printable escapes characters that could control the terminal or mislead the reader. Line ends stay. Every string that comes
// from a bundle, a server or a status passes through here.
func printable(text string) string { return strings.ReplaceAll(visible.Escape(text), "\t", " ") }

// inline is printable in one line, with nothing left out: line ends are escaped like other hidden characters.
func inline(text string) string { return visible.Line(strings.TrimSpace(text)) }

// longestItem is how much of one string is shown, in characters.
const longestItem = 2000

// bounded is inline up to a length; it says how many characters there are more.
func bounded(text string) string {
	runes := []rune(inline(text))
	if len(runes) <= longestItem {
		return string(runes)
	}
	return string(runes[:longestItem]) + "… (" + plural(len(runes)-longestItem, "more character") + ")"
}

// oneLine makes a message fit a field: its first line, cut at limit characters (0: not cut).
func oneLine(text string, limit int) string {
	first, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(printable(first))
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

// word shows a word of a rule so that it cannot be misread as several words, another one or none: unusual words are quoted,
// with escapes.
func word(text string) string {
	if ordinaryWord.MatchString(text) {
		return text
	}
	return strconv.QuoteToASCII(text)
}

// wordList shows words.
func wordList(texts []string) string {
	shown := make([]string, 0, len(texts))
	for _, text := range texts {
		shown = append(shown, word(text))
	}
	return strings.Join(shown, ", ")
}

// shellWord quotes a string for a command line where that is needed.
func shellWord(text string) string {
	if ordinaryWord.MatchString(text) && !strings.Contains(text, "*") {
		return text
	}
	return "'" + strings.ReplaceAll(inline(text), "'", `'\''`) + "'"
}
