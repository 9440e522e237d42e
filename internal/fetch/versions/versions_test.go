// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestM22Parse(t *testing.T) {
	for text, ok := range map[string]bool{
		">=1.2 <2": true, "*": true, ">=1" + strings.Repeat(" ", MaxRange-3): true,
		">=1" + strings.Repeat(" ", MaxRange-2): false, "newest": false, ">=0" + strings.Repeat(" || >=0", 10_000): false,
	} {
		parsed, err := Parse(text)
		if (err == nil) != ok || !ok && fetch.ReasonOf(err) != fetch.Refused || parsed.Empty() == ok {
			t.Errorf("%.40q: %v", text, err)
		}
		if ok && parsed.String() != text {
			t.Errorf("%q became %q", text, parsed)
		}
	}
}

// TestNewest: the order does not matter, nor do versions that come again.
func TestNewest(t *testing.T) {
	within, err := Parse(">=1.2 <2")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"1.3.0", "v1.3.0", "1.2.9", "2.0.0", "1.4.0-rc.1", "1.3.0"}
	for range len(names) {
		names = append(names[1:], names[0])
		for _, order := range [][]string{names, slices.Sorted(slices.Values(names))} {
			best := Newest{Range: within}
			for _, name := range order {
				before := best.Name
				if better := best.Look(name, semver.MustParse(name)); better != (best.Name != before) {
					t.Errorf("%q after %q: %v", name, before, better)
				}
			}
			if best.Name != "v1.3.0" || best.Bounded() != nil {
				t.Errorf("%q: %q, %v", order, best.Name, best.Bounded())
			}
		}
	}
}
