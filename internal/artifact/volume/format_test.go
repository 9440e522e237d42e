// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestF56Format(t *testing.T) {
	format := volume.Format{Kind: "snapshot", Version: 2}
	for name, c := range map[string]struct {
		content string
		reason  fetch.Reason
	}{
		"this version":            {"satchel snapshot 2\nrest", ""},
		"a newer version":         {"satchel snapshot 3\nrest", fetch.WrittenByAnotherVersion},
		"an older version":        {"satchel snapshot 1\nrest", fetch.WrittenByAnotherVersion},
		"more digits":             {"satchel snapshot 21\nrest", fetch.WrittenByAnotherVersion},
		"another kind":            {"satchel pins 2\nrest", fetch.InvalidContent},
		"no version":              {"satchel snapshot x\nrest", fetch.InvalidContent},
		"cut in the version":      {"satchel snapshot 2", fetch.InvalidContent},
		"of before there was one": {`{"revision":"v1"}`, fetch.InvalidContent},
		"empty":                   {"", fetch.InvalidContent},
		"zeros":                   {"\x00\x00\x00", fetch.InvalidContent},
	} {
		t.Run(name, func(t *testing.T) {
			rest, err := format.Cut([]byte(c.content))
			if fetch.ReasonOf(err) != c.reason {
				t.Fatalf("reason %q (%v), want %q", fetch.ReasonOf(err), err, c.reason)
			}
			if err == nil && string(rest) != "rest" {
				t.Errorf("rest %q", rest)
			}
		})
	}
}
