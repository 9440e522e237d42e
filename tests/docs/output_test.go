// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// varying is what differs from run to run in output, and what stands for it.
var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`(sha256:|sha1:)[0-9a-f]{7,64}`), "${1}DIGEST"},
	{regexp.MustCompile(`\b([0-9a-f]{40}|[0-9a-f]{12})\b`), "COMMIT"},
	{regexp.MustCompile(`-[0-9a-z]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-POD"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h)){1,3}\b( ago)?`), "AGE"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

func steady(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// printed wants the lines of a page in what was printed, in their order.
func printed(got, want string) error {
	lines := ordered(got)
	for _, line := range ordered(want) {
		wanted := steady(line)
		if wanted == "" || wanted == "..." {
			continue
		}
		found := false
		for len(lines) > 0 && !found {
			found, lines = steady(lines[0]) == wanted, lines[1:]
		}
		if !found {
			return fmt.Errorf("the page shows the line\n%s\nwhich is not, or not at its place, in\n%s", line, got)
		}
	}
	return nil
}

// ordered are the lines of a text. Those that say that something went, or came, are sorted where they follow one
// another, for that happens at once; what is waited for meanwhile is left out.
func ordered(text string) []string {
	lines := strings.Split(text, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, ": waiting: ") })
	for begin := 0; begin < len(lines); begin++ {
		end := begin
		for end < len(lines) && (strings.HasSuffix(lines[end], ": gone") || strings.HasSuffix(lines[end], ": established")) {
			end++
		}
		slices.Sort(lines[begin:end])
		begin = max(begin, end-1)
	}
	return lines
}

func TestPrinted(t *testing.T) {
	const got = "NAME   READY  AGE\nweb-6d4cf56db6-x2x9x  True  12s\ndone at 2026-11-21T10:00:00Z\na: gone\nc: waiting: for d\nb: gone\n"
	for name, tc := range map[string]struct {
		reason, want string
		fails        bool
	}{
		"the same":    {"what varies may differ", "NAME READY AGE\nweb-7c9d5b8f4-zzzzz True 3m20s\ndone at 2027-01-01T00:00:00Z", false},
		"parts":       {"pages show what matters", "...\ndone at 2027-01-01T00:00:00Z", false},
		"other words": {"the output has changed", "NAME READY SINCE", true},
		"other order": {"the output has changed", "done at 2027-01-01T00:00:00Z\nNAME READY AGE", true},
		"at once":     {"things go in any order", "b: gone\na: gone", false},
		"more":        {"the output has changed", "NAME READY AGE\nNAME READY AGE", true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := printed(got, tc.want); (err != nil) != tc.fails {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
