// SPDX-License-Identifier: Apache-2.0

package terminal_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/satchel-dev/satchel/tests/terminal"
)

var update = flag.Bool("update", false, "write the images instead of comparing them")

// TestImages: the images of the documentation show what the recorded session has. When the session changes,
// `go test ./tests/terminal -update` draws them again.
func TestImages(t *testing.T) {
	transcript, err := os.ReadFile("../session/testdata/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{
		"status.svg": "satchel status web",
		"plan.svg":   "satchel plan web",
	} {
		t.Run(name, func(t *testing.T) {
			text, err := terminal.Cut(string(transcript), command)
			if err != nil {
				t.Fatal(err)
			}
			path, drawn := filepath.Join("../../docs/images", name), terminal.SVG(command, text)
			if *update {
				if err := os.WriteFile(path, drawn, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(kept, drawn) {
				t.Errorf("docs/images/%s is not what %q printed in tests/session/testdata/session.txt: run go test ./tests/terminal -update", name, command)
			}
		})
	}
}

func TestCut(t *testing.T) {
	const transcript = "# Why?\n$ satchel status web\nweb: Ready\n└─ a\n\n# Next\n$ satchel status web -o json\n{}\n$ satchel get\na\n$ satchel get\nb\n"
	for name, tc := range map[string]struct {
		reason, command, want string
		fails                 bool
	}{
		"one":     {"up to the explanation of the next one", "satchel status web", "$ satchel status web\nweb: Ready\n└─ a", false},
		"flags":   {"the whole line counts", "satchel status web -o json", "$ satchel status web -o json\n{}", false},
		"missing": {"a renamed command must not leave an old image", "satchel plan web", "", true},
		"twice":   {"which one is meant is not clear", "satchel get", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := terminal.Cut(transcript, tc.command)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s: got %q, %v; want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

// TestSVG: the text is in the image, whatever it contains, and the image contains nothing else.
func TestSVG(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"markup":    {"markup is text", `$ a</text><script href="x">&amp;<![CDATA[`, `$ a</text><script href="x">&amp;<![CDATA[`},
		"colors":    {"colors change no text", "├─ ✓ Planned  <digest>\n└─ … Ready\n  + create  a\n  ~ update  b\n  - delete  c\n[exit code 1]", "├─ ✓ Planned  <digest>\n└─ … Ready\n  + create  a\n  ~ update  b\n  - delete  c\n[exit code 1]"},
		"spaces":    {"columns stay columns", "a   b\n    c", "a   b\n    c"},
		"controls":  {"XML has no control characters", "a\x1bb", "a\uFFFDb"},
		"long":      {"a long line goes on below, indented", strings.Repeat("word ", 23) + "end", strings.TrimRight(strings.Repeat("word ", 22), " ") + "\n      word end"},
		"long tree": {"a branch goes on", "├─ " + strings.Repeat("word ", 22), "├─ " + strings.TrimRight(strings.Repeat("word ", 21), " ") + "\n│     word "},
		"long word": {"a word without spaces is cut", strings.Repeat("é", terminal.Columns+3), strings.Repeat("é", terminal.Columns) + "\n      ééé"},
	} {
		t.Run(name, func(t *testing.T) {
			elements, text := read(t, terminal.SVG("a <title>", tc.text))
			if text != tc.want {
				t.Errorf("%s:\ngot  %q\nwant %q", tc.reason, text, tc.want)
			}
			for line := range strings.SplitSeq(text, "\n") {
				if utf8.RuneCountInString(line) > terminal.Columns {
					t.Errorf("%d characters in a line: %s", utf8.RuneCountInString(line), line)
				}
			}
			for element := range elements {
				if !strings.Contains(" svg title style rect text tspan ", " "+element+" ") {
					t.Errorf("the image contains the element %s", element)
				}
			}
		})
	}
}

// TestSVGLoadsNothing: browsers fetch nothing to show the image.
func TestSVGLoadsNothing(t *testing.T) {
	svg := string(terminal.SVG("title", "$ a"))
	for _, reference := range []string{"href", "url(", "@import", "@font-face", "src"} {
		if strings.Contains(svg, reference) {
			t.Errorf("the image contains %s", reference)
		}
	}
	if !strings.Contains(svg, "prefers-color-scheme: dark") {
		t.Error("the image has no dark mode")
	}
}

// read parses an image, and returns the names of its elements and the text that it shows.
func read(t *testing.T, svg []byte) (elements map[string]bool, text string) {
	t.Helper()
	elements = map[string]bool{}
	var lines []string
	inside := false
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return elements, strings.Join(lines, "\n")
		}
		if err != nil {
			t.Fatalf("the image is not XML: %v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local] = true
			if token.Name.Local == "text" {
				inside, lines = true, append(lines, "")
			}
		case xml.EndElement:
			inside = inside && token.Name.Local != "text"
		case xml.CharData:
			if inside {
				lines[len(lines)-1] += string(token)
			}
		}
	}
}
