// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// IsTerminal tells whether the output is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Style colours text, or leaves it.
type Style struct{ Enabled bool }

// StyleFor colours on terminals, unless the user does not want it (https://no-color.org).
func StyleFor(w io.Writer) Style {
	return Style{Enabled: IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// WidthOf is how many characters fit a line there; 0 where lines stay in one piece, for searching.
func WidthOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !IsTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return max(width, narrowest)
}

// narrowest is the width below which a terminal breaks the lines itself.
const narrowest = 40

// WriteWrapped writes a text in lines of at most width characters, broken between words where that is possible; first and
// further are what the lines begin with. Without a width it is one line.
func WriteWrapped(out *strings.Builder, text, first, further string, width int) {
	line, begin := first, true
	for word := range strings.FieldsSeq(text) {
		switch {
		case begin:
			line += word
		case width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			out.WriteString(line + "\n")
			line = further + word
		default:
			line += " " + word
		}
		begin = false
	}
	out.WriteString(strings.TrimRight(line, " ") + "\n")
}

// Color is an escape sequence that begins a colour.
type Color string

// The colours and emphases that are used.
const (
	Plain  Color = ""
	Red    Color = "\x1b[31m"
	Green  Color = "\x1b[32m"
	Yellow Color = "\x1b[33m"
	Bold   Color = "\x1b[1m"
	Faint  Color = "\x1b[2m"
)

// Paint returns the text in a colour.
func (s Style) Paint(c Color, text string) string {
	if !s.Enabled || c == Plain || text == "" {
		return text
	}
	return string(c) + text + "\x1b[0m"
}
