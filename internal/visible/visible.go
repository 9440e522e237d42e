// SPDX-License-Identifier: Apache-2.0

// Package visible escapes the characters of text from outside that a reader cannot see or that change how other text is
// shown: control characters, bidirectional controls, zero-width and other invisible characters, and bytes that are not UTF-8.
// Conditions, events, log lines and the output of the CLI all use it.
package visible

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Hidden tells whether a character shows nothing of itself or changes how others are shown. Line ends and tabs are hidden; of
// the variation selectors, which can carry bytes unseen, only the two that emoji need are not.
func Hidden(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r) && r != '\ufe0e' && r != '\ufe0f'
}

// Escape returns text with each hidden character written as JSON escapes it, such as \u202e, and each byte that is not UTF-8
// as \xff. Line ends and tabs stay. The result is unchanged by another Escape.
func Escape(text string) string {
	if !needed(text) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case kept(r):
			out.WriteRune(r)
		default:
			out.WriteString(JSON(r))
		}
		i += size
	}
	return out.String()
}

// Line is Escape with line ends escaped as well and tabs as blanks: text for a field of one line.
func Line(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", " ").Replace(Escape(text))
}

// needed tells whether Escape changes a text.
func needed(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !kept(r) })
}

func kept(r rune) bool { return r == '\n' || r == '\t' || !Hidden(r) }

// JSON is the escape of a character in a string of JSON.
func JSON(r rune) string {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Writer returns a writer that escapes what is written to it. Each call has to write whole characters, as loggers do, which
// write an entry by one call.
func Writer(next io.Writer) io.Writer { return writer{next} }

type writer struct{ next io.Writer }

// Write implements io.Writer.
func (w writer) Write(entry []byte) (int, error) {
	if _, err := io.WriteString(w.next, Escape(string(entry))); err != nil {
		return 0, err
	}
	return len(entry), nil
}
