// SPDX-License-Identifier: Apache-2.0

package visible_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/visible"
)

// TestM30EscapedText: what a reader cannot see, or what changes how the rest is shown, is written as an escape.
func TestM30EscapedText(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"plain":           {"ordinary text is the same", "applied 3 objects, ünïcode ✓ 日本", "applied 3 objects, ünïcode ✓ 日本"},
		"lines":           {"messages have lines and tables", "a\n\tb", "a\n\tb"},
		"terminal":        {"clears the screen", "\x1b[2Jx", `\u001b[2Jx`},
		"carriage return": {"overwrites the line", "failed\rReady ", `failed\u000dReady `},
		"C1":              {"is CSI in one character", "\u009b31m\u0085", `\u009b31m\u0085`},
		"delete":          {"a control character", "\x7f", `\u007f`},
		"right-to-left":   {"shows gpj.exe as exe.jpg", "invoice\u202egpj.exe", `invoice\u202egpj.exe`},
		"isolates":        {"as above", "\u2066a\u2069\u200f", `\u2066a\u2069\u200f`},
		"zero width":      {"two names look the same", "ad\u200bmin \u2060\ufeff", `ad\u200bmin \u2060\ufeff`},
		"soft hyphen":     {"as above", "ad\u00admin", `ad\u00admin`},
		"fillers":         {"letters that look like a blank", "a\u3164\u115f", `a\u3164\u115f`},
		"tags":            {"text that only a program reads", "a\U000e0041", `a\udb40\udc41`},
		"line separator":  {"a line end for some", "a\u2028b", `a\u2028b`},
		"emoji":           {"the selector belongs to the picture", "\u2764\ufe0f", "\u2764\ufe0f"},
		"selectors":       {"carry text that only a program reads", "a\ufe00\U000e0101", `a\ufe00\udb40\udd01`},
		"no UTF-8":        {"the API server refuses it", "a\xff\xfeb", `a\xff\xfeb`},
		"cut character":   {"as above", "a\xe2\x82", `a\xe2\x82`},
		"replacement":     {"it is visible", "a\ufffdb", "a\ufffdb"},
		"empty":           {"nothing", "", ""},
	} {
		if got := visible.Escape(tc.text); got != tc.want {
			t.Errorf("%s: %s: %q becomes %q, want %q", name, tc.reason, tc.text, got, tc.want)
		}
	}
	if got := visible.Line("a\nb\tc\u202e"); got != `a\nb c\u202e` {
		t.Errorf("a line: %q", got)
	}
}

// TestM30EscapedLogsAreJSON: a log line with escapes is read by programs as what was logged.
func TestM30EscapedLogsAreJSON(t *testing.T) {
	const message = "bad\u202e \u200b\U000e0041\u3164 name"
	line, err := json.Marshal(map[string]string{"msg": message})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if n, err := visible.Writer(&out).Write(line); n != len(line) || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	var read struct{ Msg string }
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || read.Msg != message {
		t.Errorf("%s is read as %q: %v", out.String(), read.Msg, err)
	}
	if strings.ContainsFunc(out.String(), visible.Hidden) {
		t.Errorf("the line still hides something: %q", out.String())
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("\x1b]0;title\x07")
	f.Add("a\u202eb\xff")
	f.Fuzz(func(t *testing.T, text string) {
		once := visible.Escape(text)
		if strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(once), visible.Hidden) {
			t.Errorf("%q still hides something: %q", text, once)
		}
		if again := visible.Escape(once); again != once {
			t.Errorf("%q becomes %q the second time", once, again)
		}
	})
}
