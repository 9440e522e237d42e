// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// extended is a header of a kind that says something about what follows it.
func extended(t testing.TB, kind byte, content string) []byte {
	t.Helper()
	packed := archive(t, file("x", content))
	packed = packed[:len(packed)-2*tarBlock]
	packed[156] = kind
	return checksum(packed)
}

// record is one of a PAX header: its length, which counts itself, a key and a value.
func record(text string) string {
	length := len(text) + 2
	for len(fmt.Sprint(length))+len(text)+2 != length {
		length++
	}
	return fmt.Sprintf("%d %s\n", length, text)
}

// TestM5ExtendedHeaders: what an extended header says counts instead of what it stands before, and is judged as that.
func TestM5ExtendedHeaders(t *testing.T) {
	plain := archive(t, file("a", "1"))
	symlink := archive(t, link("a", "b"))
	hardWithData := slices.Concat(withTypeAndSize(t, tar.TypeLink, "00000001000")[:tarBlock], archive(t, file("b", "2")))
	pax := func(records ...string) []byte {
		return slices.Concat(extended(t, tar.TypeXHeader, strings.Join(records, "")), plain)
	}
	cases := map[string]struct {
		reason string
		packed []byte
		want   Reason
		files  map[string]string
	}{
		"Path":       {"the name that counts", pax(record("path=b/c")), "", map[string]string{"b/": "", "b/c": "1"}},
		"Parent":     {"leaves the archive", pax(record("path=../evil")), InvalidContent, nil},
		"Absolute":   {"leaves the archive", pax(record("path=/etc/passwd")), InvalidContent, nil},
		"Twice":      {"the last one counts", pax(record("path=good"), record("path=../evil")), InvalidContent, nil},
		"Slash":      {"a file is no folder", pax(record("path=b/")), InvalidContent, nil},
		"Longest":    {"longer than any real path", pax(record("path=" + strings.Repeat("abc/", 5000) + "x")), LimitExceeded, nil},
		"Larger":     {"more than there is", pax(record("size=100000")), InvalidContent, nil},
		"Huge":       {"beyond any limit", pax(record("size=99999999999999")), LimitExceeded, nil},
		"Negative":   {"sizes are not negative", pax(record("size=-1")), InvalidContent, nil},
		"NoNumber":   {"no size", pax(record("size=x")), InvalidContent, nil},
		"NoLength":   {"malformed", pax("path=b\n"), InvalidContent, nil},
		"Lies":       {"malformed", pax("99 path=b\n"), InvalidContent, nil},
		"NoEquals":   {"malformed", pax(record("path")), InvalidContent, nil},
		"ZeroLength": {"malformed", pax("0 path=b\n"), InvalidContent, nil},
		"Sparse":     {"holes in the oldest form", pax(record("GNU.sparse.size=10737418240"), record("GNU.sparse.numblocks=1"), record("GNU.sparse.map=0,1")), InvalidContent, nil},
		"Mode":       {"modes are ignored", pax(record("mode=4777"), record("uid=0"), record("SCHILY.xattr.security.capability=x")), "", map[string]string{"a": "1"}},
		"Times":      {"1970, 2200 and no time at all", pax(record("mtime=0"), record("atime=7258118400.5"), record("ctime=-1")), "", map[string]string{"a": "1"}},
		"TooLarge":   {"an extended header of 2 MiB", pax(record("comment=" + strings.Repeat("x", 2<<20))), InvalidContent, nil},
		"Global":     {"about all that follows: it does not apply to names", slices.Concat(extended(t, tar.TypeXGlobalHeader, record("path=../evil")), plain), "", map[string]string{"a": "1"}},
		"GNUName":    {"the same in the older form", slices.Concat(extended(t, tar.TypeGNULongName, "../evil\x00"), plain), InvalidContent, nil},
		"GNUNameOK":  {"the same in the older form", slices.Concat(extended(t, tar.TypeGNULongName, "b\x00"), plain), "", map[string]string{"b": "1"}},
		"GNUNoName":  {"says nothing", slices.Concat(extended(t, tar.TypeGNULongName, "\x00"), plain), "", map[string]string{"a": "1"}},
		"GNUTwice":   {"one after the other", slices.Concat(extended(t, tar.TypeGNULongName, "b\x00"), extended(t, tar.TypeGNULongName, "../evil\x00"), plain), InvalidContent, nil},
		"GNULink":    {"a target is not looked at", slices.Concat(extended(t, tar.TypeGNULongLink, "/etc/passwd\x00"), symlink), "", map[string]string{}},
		"Alone":      {"about nothing", slices.Concat(extended(t, tar.TypeXHeader, record("path=b")), make([]byte, 2*tarBlock)), "", map[string]string{}},
		"HardData":   {"a link has no content", hardWithData, "", map[string]string{"b": "2"}},
		"Base256":    {"a size in the binary form, negative", withSize(t, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), InvalidContent, nil},
		"Overflow":   {"a size of more bits than there are", withSize(t, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), InvalidContent, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			err := tree.Untar(t.Context(), bytes.NewReader(tc.packed))
			if ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if tc.files == nil {
				tc.files = map[string]string{}
			}
			if diff := cmp.Diff(tc.files, contents(t, tree.FS())); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestM4ExtendedHeadersWithoutEnd has headers about headers, which are no entries and are bounded all the same.
func TestM4ExtendedHeadersWithoutEnd(t *testing.T) {
	limits := smallLimits()
	for _, kind := range []byte{tar.TypeXHeader, tar.TypeGNULongName, tar.TypeXGlobalHeader} {
		one := extended(t, kind, record("comment=x"))
		packed := slices.Concat(bytes.Repeat(one, int(streamBytes(limits))/len(one)+1), archive(t, file("a", "1")))
		began := time.Now()
		if err := newTree(t, limits).Untar(t.Context(), bytes.NewReader(packed)); ReasonOf(err) != LimitExceeded || time.Since(began) > noisyLimit {
			t.Errorf("%c: %v after %v", kind, err, time.Since(began))
		}
	}
}

// noisyLimit is far more than refusing anything takes.
const noisyLimit = 12 * time.Second
