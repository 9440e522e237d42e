// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestM1TarNames(t *testing.T) {
	cases := map[string]struct{ reason, name string }{
		"Parent":          {"leaves the archive", "../x"},
		"ParentInside":    {"leaves it on a detour", "a/../../x"},
		"ParentHarmless":  {"comes back, but no honest archive has it", "a/../x"},
		"OnlyParent":      {"names the folder outside", ".."},
		"OnlyDot":         {"a file cannot be the root", "."},
		"Absolute":        {"leaves the archive", "/abs"},
		"Backslash":       {"leaves it on another system", `a\..\x`},
		"Drive":           {"leaves it on another system", "C:x"},
		"Control":         {"drives a terminal", "a\x1bb"},
		"Newline":         {"forges log lines", "a\nb"},
		"RightToLeft":     {"shows another name than it has", "a\u202egpj.yaml"},
		"ZeroWidth":       {"two names look alike", "a\u200bb"},
		"BrokenUTF8":      {"no text", "a\xffb"},
		"Component300":    {"longer than file systems store", strings.Repeat("a", 300)},
		"Path5000":        {"longer than any real path", strings.Repeat("abc/", 1250) + "x"},
		"Empty":           {"names nothing", ""},
		"Dash":            {"becomes an option of some command", "-rf"},
		"DashInside":      {"the same one folder down", "a/-rf"},
		"FileWithSlash":   {"a file is no folder", "a/"},
		"DoubleSlash":     {"has an empty part", "a//b"},
		"DotInside":       {"has an empty part", "a/./b"},
		"DoubleSlashRoot": {"absolute in disguise", ".//etc"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var packed []byte
			if len(tc.name) < 100 {
				packed = append(archive(t, file("good", "1"))[:1024], rename(archive(t, file("x", "2")), tc.name)...)
			} else {
				packed = archive(t, file("good", "1"), file(tc.name, "2"))
			}
			tree := newTree(t, DefaultLimits())
			err := tree.Untar(context.Background(), bytes.NewReader(packed))
			if r := ReasonOf(err); r != InvalidContent && r != LimitExceeded {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if !strings.Contains(err.Error(), "archive entry "+Quote(tc.name)) || len([]rune(err.Error())) > 400 {
				t.Errorf("the entry is not named, or at length: %v", err)
			}
			if got := contents(t, tree.FS()); len(got) > 0 {
				t.Errorf("something stayed: %v", got)
			}
		})
	}
}

func TestM1NULInPAXName(t *testing.T) {
	packed := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "näme", Format: tar.FormatPAX})
	packed = bytes.Replace(packed, []byte("path=n\xc3\xa4me"), []byte("path=n\x00\x00me"), 1)
	err := newTree(t, DefaultLimits()).Untar(context.Background(), bytes.NewReader(packed))
	if ReasonOf(err) != InvalidContent {
		t.Errorf("a name with a NUL: %v", err)
	}
}

func TestUntarAccepts(t *testing.T) {
	cases := map[string]struct {
		reason  string
		entries []tar.Header
		want    map[string]string
	}{
		"DotSlash": {
			"`tar -c .` writes names that way",
			[]tar.Header{dir("./"), dir("./a/"), file("./a/b", "1")},
			map[string]string{"a/": "", "a/b": "1"},
		},
		"NoFolders": {
			"folders need no entries of their own",
			[]tar.Header{file("a/b/c", "1")},
			map[string]string{"a/": "", "a/b/": "", "a/b/c": "1"},
		},
		"Later": {
			"a later file replaces an earlier one, also a longer one",
			[]tar.Header{file("a", "long"), file("a", "2")},
			map[string]string{"a": "2"},
		},
		"Modes": {
			"modes are normalised: see contents",
			[]tar.Header{
				{Typeflag: tar.TypeDir, Name: "d", Mode: 0},
				{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o7777, ModTime: time.Unix(0, 0)},
				{Typeflag: tar.TypeReg, Name: "g", Mode: 0, ModTime: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)},
				{Typeflag: tar.TypeReg, Name: "h", Mode: 0o600, PAXRecords: map[string]string{"SCHILY.xattr.user.x": "y"}},
			},
			map[string]string{"d/": "", "d/f": "", "g": "", "h": ""},
		},
		"GlobalHeader": {
			"git archive begins with one",
			[]tar.Header{
				{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "abc"}},
				file("a", "1"),
			},
			map[string]string{"a": "1"},
		},
		"Nothing": {"an archive may be empty", nil, map[string]string{}},
	}
	for name, tc := range cases {
		t.Run("M5"+name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			if err := tree.Untar(context.Background(), bytes.NewReader(archive(t, tc.entries...))); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, contents(t, tree.FS())); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func TestM2LinksAreSkipped(t *testing.T) {
	cases := map[string]struct {
		reason  string
		entries []tar.Header
		want    map[string]string
		refused bool
	}{
		"Inside":     {"not created", []tar.Header{file("a", "1"), link("b", "a")}, map[string]string{"a": "1"}, false},
		"Outside":    {"not created", []tar.Header{link("b", "../../etc/passwd")}, map[string]string{}, false},
		"Absolute":   {"not created", []tar.Header{link("b", "/etc/passwd")}, map[string]string{}, false},
		"Cycle":      {"not followed", []tar.Header{link("a", "b"), link("b", "a")}, map[string]string{}, false},
		"Through":    {"a file through it lands in a folder", []tar.Header{link("a", "/tmp"), file("a/x", "1")}, map[string]string{"a/": "", "a/x": "1"}, false},
		"HardEarly":  {"not created", []tar.Header{file("a", "1"), hard("b", "a")}, map[string]string{"a": "1"}, false},
		"HardAbsent": {"not looked at", []tar.Header{hard("b", "none")}, map[string]string{}, false},
		"HardOut":    {"not looked at", []tar.Header{hard("b", "/etc/passwd")}, map[string]string{}, false},
		"OverFile":   {"the file it replaces is gone", []tar.Header{file("a", "1"), link("a", "b")}, map[string]string{}, false},
		"OverFolder": {"a folder is not replaced", []tar.Header{file("a/b", "1"), link("a", "/tmp")}, nil, true},
		"EvilName":   {"its name is checked as any other", []tar.Header{link("../a", "b")}, nil, true},
		"HardEvil":   {"its name is checked as any other", []tar.Header{hard("../a", "b")}, nil, true},
		"HardFolder": {"a folder is not replaced", []tar.Header{file("a/b", "1"), hard("a", "c")}, nil, true},
		"HardOfLink": {"neither is created", []tar.Header{link("a", "/etc/passwd"), hard("b", "a")}, map[string]string{}, false},
		"HardLater":  {"what comes later is not looked at", []tar.Header{hard("b", "a"), file("a", "1")}, map[string]string{"a": "1"}, false},
		"Self":       {"not followed", []tar.Header{link("a", "a"), hard("b", "b")}, map[string]string{}, false},
		"Chain":      {"a file through several lands in a folder", []tar.Header{link("a", "b"), link("b", "/tmp"), file("a/x", "1")}, map[string]string{"a/": "", "a/x": "1"}, false},
		"Replaced":   {"a file in the place of a link", []tar.Header{link("a", "/etc/passwd"), file("a", "1")}, map[string]string{"a": "1"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			err := tree.Untar(context.Background(), bytes.NewReader(archive(t, tc.entries...)))
			if tc.refused {
				if ReasonOf(err) != InvalidContent {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, contents(t, tree.FS())); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}
