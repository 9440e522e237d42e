// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// isTerminal tells whether people read what is written there.
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

// printable takes out what could steer the reader's terminal: statuses repeat words of bundles and servers. Line ends
// stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case !unicode.IsGraphic(r):
			return '\uFFFD'
		}
		return r
	}, text)
}
