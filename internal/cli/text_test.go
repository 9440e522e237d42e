// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain":           "plain",
		"two\nlines":      "two\nlines",
		"a\tb":            "a b",
		"\x1b[31mred":     `\u001b[31mred`,
		"\x9b2J":          `\x9b2J`,
		"a\u202eb\u200bc": `a\u202eb\u200bc`,
		"bell\x07\r":      `bell\u0007\u000d`,
		"blank\u3164":     `blank\u3164`,
		"ünïcode ✓":       "ünïcode ✓",
	} {
		if got := view.Printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestInlineAndWord(t *testing.T) {
	if got := view.Inline(" a\nb\x1b \n"); got != `a\nb\u001b` {
		t.Errorf("got %q", got)
	}
	if got := view.Bounded(strings.Repeat("a", view.LongestItem+2)); got != strings.Repeat("a", view.LongestItem)+"… (2 more characters)" {
		t.Errorf("got %q", got)
	}
	for in, want := range map[string]string{
		"get": "get", "*": "*", "pods/exec": "pods/exec", "/healthz/*": "/healthz/*", "system:serviceaccount:a:b": "system:serviceaccount:a:b",
		"": `""`, "get ": `"get "`, "get\n": `"get\n"`, "\u202eteg": `"\u202eteg"`, "a, b": `"a, b"`, `a"b`: `"a\"b"`, "\xff": `"\xff"`,
	} {
		if got := view.Word(in); got != want {
			t.Errorf("word(%q) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"a/b.c": "a/b.c", "a b": "'a b'", "it's": `'it'\''s'`, "*": "'*'", "": "''", "$(x)": "'$(x)'"} {
		if got := view.ShellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b]0;title\x07")
	f.Add("ordinary text\nin lines")
	f.Fuzz(func(t *testing.T, text string) {
		once := view.Printable(text)
		if strings.ContainsAny(once, "\x1b\x07\r\x00\u009b") {
			t.Errorf("%q can steer a terminal", once)
		}
		if again := view.Printable(once); again != once {
			t.Errorf("%q becomes %q the second time", once, again)
		}
	})
}

func TestOneLine(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, want string
		limit              int
	}{
		"short":    {reason: "nothing to do", text: "abc", limit: 5, want: "abc"},
		"exact":    {reason: "the limit fits", text: "abcde", limit: 5, want: "abcde"},
		"long":     {reason: "characters count, not bytes", text: "äbcdef", limit: 5, want: "äbcd…"},
		"lines":    {reason: "there is more", text: "\nfirst\nsecond", want: "first …"},
		"no limit": {reason: "wide output", text: strings.Repeat("a", 500), want: strings.Repeat("a", 500)},
	} {
		if got := view.OneLine(tc.text, tc.limit); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestColours shows which outputs get colours: terminals, unless the user does not want them. A buffer is no terminal.
func TestColours(t *testing.T) {
	if printer.StyleFor(&bytes.Buffer{}).Enabled {
		t.Error("a file would get colours")
	}
	if got := (printer.Style{}).Paint(printer.Red, "x"); got != "x" {
		t.Errorf("without colours: %q", got)
	}
	if got := (printer.Style{Enabled: true}).Paint(printer.Red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("with colours: %q", got)
	}
}

func TestProgressCounts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 3000))
	}))
	defer server.Close()
	var out bytes.Buffer
	p := printer.NewProgress(&out, "Downloading")
	client := &http.Client{Transport: p.Count(http.DefaultTransport)}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	p.Done()
	if got := p.Bytes.Load(); got != 3000 {
		t.Errorf("%d bytes counted", got)
	}
	if out.Len() > 0 {
		t.Errorf("%q was written to what is no terminal", out.String())
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB"} {
		if got := printer.BytesText(n); got != want {
			t.Errorf("bytesText(%d) = %s, want %s", n, got, want)
		}
	}
}
