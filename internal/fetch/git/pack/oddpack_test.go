// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/packs"
)

// offsetKind is a delta with its base so many bytes before it.
const offsetKind = 6

// resummed changes a pack and gives it a checksum that is right.
func resummed(pack []byte, change func(body []byte) []byte) []byte {
	body := change(slices.Clone(pack[:len(pack)-sha1.Size]))
	sum := sha1.Sum(body)
	return append(body, sum[:]...)
}

// counted has a pack say that it holds so many objects.
func counted(pack []byte, objects uint32) []byte {
	return resummed(pack, func(body []byte) []byte {
		binary.BigEndian.PutUint32(body[8:], objects)
		return body
	})
}

// TestM17OddPacks has packs that no git writes.
func TestM17OddPacks(t *testing.T) {
	base := strings.Repeat("b", 100)
	same := packs.Difference(100, 100, 0x90, 100)
	back := func(distance byte) packs.Object { return packs.Raw(offsetKind, len(same), []byte{distance}, same) }
	one := packs.Of(packs.Whole(packs.Blob, base))
	cases := map[string]struct {
		reason string
		pack   []byte
		want   fetch.Reason
	}{
		"Itself":    {"an object that is a delta of itself", packs.Of(packs.Whole(packs.Blob, base), back(0)), fetch.InvalidContent},
		"Between":   {"a base in the middle of an object", packs.Of(packs.Whole(packs.Blob, base), back(3)), fetch.InvalidContent},
		"Before":    {"a base before the pack", packs.Of(packs.Whole(packs.Blob, base), back(127)), fetch.InvalidContent},
		"Far":       {"a base an impossible number of bytes away", packs.Of(packs.Whole(packs.Blob, base), packs.Raw(offsetKind, len(same), append(slices.Repeat([]byte{0xff}, 30), 0x7f), same)), fetch.InvalidContent},
		"OwnResult": {"a delta of what it makes, beside the object itself", packs.Of(packs.Whole(packs.Blob, base), packs.DeltaOf(base, same)), ""},
		"Each other": {"two deltas of objects that are not there", packs.Of(
			packs.Raw(packs.Delta, len(same), slices.Repeat([]byte{1}, 20), same), packs.Raw(packs.Delta, len(same), slices.Repeat([]byte{2}, 20), same)), fetch.InvalidContent},
		"Reserved": {"a kind of object that does not exist", packs.Of(packs.Whole(5, base)), fetch.InvalidContent},
		"Zero":     {"another kind of object that does not exist", packs.Of(packs.Whole(0, base)), fetch.InvalidContent},
		"Fewer":    {"fewer objects than it says", counted(one, 2), fetch.InvalidContent},
		"Most":     {"as many objects as can be said", counted(one, 1<<32-1), fetch.LimitExceeded},
		"Empty":    {"no object at all", packs.Of(), ""},
		"Twice":    {"an object twice", packs.Of(packs.Whole(packs.Blob, base), packs.Whole(packs.Blob, base)), ""},
		"Version":  {"a version that does not exist", resummed(one, func(body []byte) []byte { body[7] = 4; return body }), fetch.InvalidContent},
		"Magic":    {"no pack", []byte("<html>"), fetch.InvalidContent},
		"Nothing":  {"no bytes", nil, fetch.InvalidContent},
		"NoSum":    {"cut before the checksum", one[:len(one)-sha1.Size], fetch.InvalidContent},
		"CutZlib":  {"cut in an object", one[:20], fetch.InvalidContent},
		"BadZlib":  {"an object that is not compressed", resummed(one, func(body []byte) []byte { return append(body[:14], base...) }), fetch.InvalidContent},
		"Size":     {"a size of more bits than there are", resummed(one, func(body []byte) []byte { return append(append(body[:12], slices.Repeat([]byte{0xff}, 40)...), 0x7f) }), fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, err := os.Create(filepath.Join(dir, "pack"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.Write(tc.pack); err != nil {
				t.Fatal(err)
			}
			opened, err := Open(context.Background(), file, dir, fetch.DefaultLimits())
			if fetch.ReasonOf(err) != tc.want && (tc.want != fetch.InvalidContent || fetch.ReasonOf(err) != fetch.LimitExceeded) || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err == nil && opened.Close() != nil {
				t.Error("it cannot be closed")
			}
		})
	}
}
