// SPDX-License-Identifier: Apache-2.0

// Package terminal draws commands and what they printed as images for the documentation. The images are drawn
// from a recorded session, so they show what the command line prints.
package terminal

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// Columns is the width of the terminal in characters.
	Columns = 110

	// In pixels, for a monospace font of 13 pixels, where a character is at most 7.9 wide.
	textWidth  = Columns * 79 / 10
	lineHeight = 19
	margin     = 16
)

// Cut returns one command of a transcript with its output. In a transcript, a command is a line that begins
// with "$ ", and an explanation is a line that begins with "# ".
func Cut(transcript, command string) (string, error) {
	var cut []string
	found, inside := 0, false
	for line := range strings.SplitSeq(transcript, "\n") {
		if strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "# ") {
			inside = line == "$ "+command
			if inside {
				found++
			}
		}
		if inside {
			cut = append(cut, line)
		}
	}
	if found != 1 {
		return "", fmt.Errorf("the transcript has the command %q %d times, want once", command, found)
	}
	return strings.TrimRight(strings.Join(cut, "\n"), "\n"), nil
}

// SVG draws text. The image loads nothing, and its colors follow the light or dark mode of the reader.
func SVG(title, text string) []byte {
	lines := wrap(text)
	width, height := textWidth+2*margin, len(lines)*lineHeight+2*margin
	var svg bytes.Buffer
	fmt.Fprintf(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n",
		width, height, width, height)
	fmt.Fprintf(&svg, "<title>%s</title>\n<style>%s</style>\n", escape(title), style)
	fmt.Fprintf(&svg, "<rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width-1, height-1)
	for i, line := range lines {
		fmt.Fprintf(&svg, "<text class=\"line\" x=\"%d\" y=\"%d\" xml:space=\"preserve\">", margin, margin+i*lineHeight+lineHeight*3/4)
		for _, s := range spans(line) {
			if s.class == "" {
				svg.WriteString(escape(s.text))
				continue
			}
			fmt.Fprintf(&svg, "<tspan class=\"%s\">%s</tspan>", s.class, escape(s.text))
		}
		svg.WriteString("</text>\n")
	}
	svg.WriteString("</svg>\n")
	return svg.Bytes()
}

const style = `
.page { fill: #f6f8fa; stroke: #d0d7de }
.line { fill: #1f2328; font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }
.prompt { font-weight: bold }
.good { fill: #116329 }
.wait { fill: #9a6700 }
.bad { fill: #cf222e }
.dim { fill: #6e7781 }
@media (prefers-color-scheme: dark) {
.page { fill: #161b22; stroke: #30363d }
.line { fill: #e6edf3 }
.good { fill: #7ee787 }
.wait { fill: #e3b341 }
.bad { fill: #ff7b72 }
.dim { fill: #8b949e }
}
`

// escape makes text safe as the content of an element.
func escape(text string) string {
	var escaped bytes.Buffer
	// A bytes.Buffer fails no write.
	_ = xml.EscapeText(&escaped, []byte(text))
	return escaped.String()
}

// span is a part of a line in one color.
type span struct{ class, text string }

// highlights are the parts of a line that have a color. The first that matches counts.
var highlights = []struct {
	class   string
	pattern string
}{
	{"prompt", `^\$ .*`},
	{"dim", `^\[exit code \d+\]$`},
	{"good", `^  \+ [a-z]+|✓`},
	{"wait", `^  ~ [a-z]+|…`},
	{"bad", `^  - [a-z]+|✗`},
	{"dim", `<[a-z]+>`}, // what differs from run to run
}

var highlighted = func() *regexp.Regexp {
	patterns := make([]string, 0, len(highlights))
	for _, h := range highlights {
		patterns = append(patterns, "("+h.pattern+")")
	}
	return regexp.MustCompile(strings.Join(patterns, "|"))
}()

// spans cuts a line into parts of one color each.
func spans(line string) []span {
	var parts []span
	end := 0
	for _, match := range highlighted.FindAllStringSubmatchIndex(line, -1) {
		if match[0] > end {
			parts = append(parts, span{text: line[end:match[0]]})
		}
		for i, h := range highlights {
			if match[2*i+2] >= 0 {
				parts = append(parts, span{h.class, line[match[0]:match[1]]})
			}
		}
		end = match[1]
	}
	if end < len(line) {
		parts = append(parts, span{text: line[end:]})
	}
	return parts
}

// wrap breaks long lines at spaces. The rest of a line is indented, beside the branches of a tree.
func wrap(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		indent := "      "
		if strings.HasPrefix(line, "├") || strings.HasPrefix(line, "│") {
			indent = "│     "
		}
		for utf8.RuneCountInString(line) > Columns {
			head := string([]rune(line)[:Columns+1])
			at := strings.LastIndex(head, " ")
			if at <= len(indent) {
				at = len(string([]rune(line)[:Columns])) // a word longer than a line
			}
			lines = append(lines, strings.TrimRight(line[:at], " "))
			line = indent + strings.TrimLeft(line[at:], " ")
		}
		lines = append(lines, line)
	}
	return lines
}
