// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal tells whether the output is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// style colours text, or leaves it.
type style struct{ enabled bool }

// styleFor colours on terminals, unless the user does not want it (https://no-color.org).
func styleFor(w io.Writer) style {
	return style{enabled: isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// widthOf is how many characters fit a line there; 0 where lines stay in one piece, for searching.
func widthOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !isTerminal(w) {
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

// writeWrapped writes a text in lines of at most width characters, broken between words where that is possible; first and
// further are what the lines begin with. Without a width it is one line.
func writeWrapped(out *strings.Builder, text, first, further string, width int) {
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

// color is an escape sequence that begins a colour.
type color string

const (
	plain  color = ""
	red    color = "\x1b[31m"
	green  color = "\x1b[32m"
	yellow color = "\x1b[33m"
	bold   color = "\x1b[1m"
	faint  color = "\x1b[2m"
)

// paint returns the text in a colour.
func (s style) paint(c color, text string) string {
	if !s.enabled || c == plain || text == "" {
		return text
	}
	return string(c) + text + "\x1b[0m"
}
