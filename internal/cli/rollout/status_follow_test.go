// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
)

// TestFit wants each line of a frame to take one line of the terminal, because the next frame goes up by their number.
func TestFit(t *testing.T) {
	for _, tc := range []struct {
		name          string
		text          string
		width, height int
		want          string
		lines         int
	}{
		{"all fits", "a\nbc\n", 10, 10, "a\nbc\n", 2},
		{"a long line", "abcdef\n", 3, 10, "abc\x1b[0m\n", 1},
		{"as long as the terminal", "abc\n", 3, 10, "abc\n", 1},
		{"colours take no place", "\x1b[31mabc\x1b[0m\n", 3, 10, "\x1b[31mabc\x1b[0m\n", 1},
		{"characters, not bytes", "█▒░x\n", 3, 10, "█▒░\x1b[0m\n", 1},
		{"an unknown size", strings.Repeat("x", 500) + "\n", 0, 0, strings.Repeat("x", 500) + "\n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, lines := fit(tc.text, tc.width, tc.height); got != tc.want || lines != tc.lines {
				t.Errorf("got %d lines %q, want %d lines %q", lines, got, tc.lines, tc.want)
			}
		})
	}
	frame, lines := fit(strings.Repeat("x\n", 50), 80, 10)
	if lines != 9 || strings.Count(frame, "\n") != 9 || !strings.Contains(frame, "… 42 more lines") {
		t.Errorf("50 lines on a terminal of 10: %d lines: %q", lines, frame)
	}
}
