// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/packs"
)

func TestM17Patch(t *testing.T) {
	base := []byte("0123456789")
	cases := map[string]struct {
		reason string
		delta  []byte
		want   string
	}{
		"Copy":       {"offset 2, size 3", packs.Difference(10, 3, 0x91, 2, 3), "234"},
		"Insert":     {"two bytes", packs.Difference(10, 2, 2, 'a', 'b'), "ab"},
		"Both":       {"in their order", packs.Difference(10, 5, 1, 'a', 0x90, 4), "a0123"},
		"Empty":      {"nothing at all", nil, ""},
		"NoTarget":   {"only one size", []byte{10}, ""},
		"OtherBase":  {"a delta of another object", packs.Difference(9, 2, 2, 'a', 'b'), ""},
		"Beyond":     {"the range leaves the base", packs.Difference(10, 5, 0x91, 8, 5), ""},
		"FarBeyond":  {"the largest range there is", packs.Difference(10, 5, 0xff, 255, 255, 255, 255, 255, 255, 255), ""},
		"NoSize":     {"which means 64 KiB", packs.Difference(10, 5, 0x80), ""},
		"Short":      {"fewer bytes than announced", packs.Difference(10, 3, 2, 'a', 'b'), ""},
		"Long":       {"more bytes than announced", packs.Difference(10, 1, 2, 'a', 'b'), ""},
		"CutInsert":  {"bytes are missing", packs.Difference(10, 2, 2, 'a'), ""},
		"CutCopy":    {"operands are missing", packs.Difference(10, 3, 0x91, 2), ""},
		"Reserved":   {"the command without a meaning", packs.Difference(10, 2, 0, 2, 'a', 'b'), ""},
		"SizeNoEnd":  {"a size without an end", bytes.Repeat([]byte{0xff}, 20), ""},
		"HugeTarget": {"1 TiB is announced", packs.Difference(10, 1<<40, 2, 'a', 'b'), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := targetSize(tc.delta)
			var got []byte
			if err == nil {
				got, err = patch(base, tc.delta)
			}
			if string(got) != tc.want || (err == nil) != (tc.want != "") || err != nil && fetch.ReasonOf(err) == "" {
				t.Errorf("%s: %q, %v", tc.reason, got, err)
			}
		})
	}
}

// FuzzM17Patch compares with go-git's, which grows its buffers.
func FuzzM17Patch(f *testing.F) {
	f.Add([]byte("0123456789"), packs.Difference(10, 5, 1, 'a', 0x91, 2, 4))
	f.Add([]byte("0"), packs.Difference(1, 4, 4, 'a', 'b', 'c', 'd'))
	f.Add(bytes.Repeat([]byte("0"), 1<<16), packs.Difference(1<<16, 1<<16, 0x80))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if len(base) == 0 || len(delta) < 4 {
			return // go-git takes no empty base, and no delta that short
		}
		if _, err := targetSize(delta); err != nil {
			return
		}
		got, err := patch(base, delta)
		want, wantErr := packfile.PatchDelta(base, delta)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%x, %v; go-git: %x, %v", got, err, want, wantErr)
		}
	})
}
