// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestM10LayersAreFlattened(t *testing.T) {
	type layers = [][]tar.Header
	base := []tar.Header{dir("m"), file("m/a", "1"), file("m/b", "1"), file("m/d/x", "1"), file("top", "1")}
	cases := map[string]struct {
		reason string
		layers layers
		want   map[string]string
	}{
		"Replace": {
			"the later layer wins", layers{base, {file("m/a", "2")}},
			map[string]string{"m/": "", "m/a": "2", "m/b": "1", "m/d/": "", "m/d/x": "1", "top": "1"},
		},
		"Whiteout": {
			"a removed file is gone", layers{base, {file("m/.wh.a", ""), file("m/.wh.d", "")}},
			map[string]string{"m/": "", "m/b": "1", "top": "1"},
		},
		"WhiteoutOfNothing": {
			"allowed by the specification", layers{base, {file("x/.wh.a", "")}, {file("m/.wh.m", "")}},
			map[string]string{"m/": "", "m/a": "1", "m/b": "1", "m/d/": "", "m/d/x": "1", "top": "1"},
		},
		"WhiteoutBeforeFile": {
			"acts on lower layers only", layers{base, {file("m/.wh.a", ""), file("m/a", "2")}},
			map[string]string{"m/": "", "m/a": "2", "m/b": "1", "m/d/": "", "m/d/x": "1", "top": "1"},
		},
		"WhiteoutAfterFile": {
			"wherever it stands", layers{base, {file("m/a", "2"), file("m/.wh.a", ""), file("m/d/y", "2"), file("m/.wh.d", "")}},
			map[string]string{"m/": "", "m/a": "2", "m/b": "1", "m/d/": "", "m/d/y": "2", "top": "1"},
		},
		"Opaque": {
			"a folder is replaced", layers{base, {file("m/c", "2"), file("m/.wh..wh..opq", ""), file("m/d/y", "2")}},
			map[string]string{"m/": "", "m/c": "2", "m/d/": "", "m/d/y": "2", "top": "1"},
		},
		"OpaqueRoot": {
			"also the whole image", layers{base, {file("new", "2"), file(".wh..wh..opq", "")}},
			map[string]string{"new": "2"},
		},
		"OpaqueTwice": {
			"its own files stay", layers{base, {file("m/.wh..wh..opq", ""), file("m/c", "2"), file("m/.wh..wh..opq", "")}},
			map[string]string{"m/": "", "m/c": "2", "top": "1"},
		},
		"FileOverFolder": {
			"without a whiteout, as builders write it", layers{base, {file("m", "2")}},
			map[string]string{"m": "2", "top": "1"},
		},
		"FolderOverFile": {
			"the reverse", layers{base, {file("top/x", "2")}, {dir("m/a")}},
			map[string]string{"m/": "", "m/a/": "", "m/b": "1", "m/d/": "", "m/d/x": "1", "top/": "", "top/x": "2"},
		},
		"LinkOverFolder": {
			"the link is skipped, what it covers is gone", layers{base, {link("m", "other")}},
			map[string]string{"top": "1"},
		},
		"LinkOverFile": {
			"a stale manifest must not be read", layers{base, {link("m/a", "b")}, {hard("m/b", "top")}},
			map[string]string{"m/": "", "m/d/": "", "m/d/x": "1", "top": "1"},
		},
		"ThroughLink": {
			"nothing is written through a link", layers{{link("m", "/tmp")}, {file("m/a", "2")}},
			map[string]string{"m/": "", "m/a": "2"},
		},
		"AUFS": {
			"remains of an old storage driver", layers{base, {file(".wh..wh.plnk", ""), file("m/.wh..wh.aufs", "")}},
			map[string]string{"m/": "", "m/a": "1", "m/b": "1", "m/d/": "", "m/d/x": "1", "top": "1"},
		},
		"Empty": {
			"layers without content are common", layers{base, nil, {file("m/.wh.d", "")}},
			map[string]string{"m/": "", "m/a": "1", "m/b": "1", "top": "1"},
		},
	}
	for name, tc := range cases {
		for _, prefix := range []string{"", "sub/tree"} {
			t.Run(name+"/"+prefix, func(t *testing.T) {
				for what, outer := range map[string]*Tree{"folder": newTree(t, DefaultLimits()), "packed": newPackedTree(t, DefaultLimits())} {
					tree, err := outer.Sub(prefix)
					if err != nil {
						t.Fatal(err)
					}
					for _, entries := range tc.layers {
						if err := tree.UntarLayer(context.Background(), bytes.NewReader(archive(t, entries...)), Uncompressed); err != nil {
							t.Fatalf("%s, %s: %v", tc.reason, what, err)
						}
					}
					if diff := cmp.Diff(tc.want, contents(t, tree.FS())); diff != "" {
						t.Errorf("%s, %s: %s", tc.reason, what, diff)
					}
				}
				for _, folder := range []string{"m", "m/d"} {
					checkOnly(t, prefix, folder, tc.layers, tc.want)
				}
			})
		}
	}
}

// checkOnly unpacks one folder of layers, and wants what it has when all is unpacked.
func checkOnly(t *testing.T, prefix, folder string, layers [][]tar.Header, all map[string]string) {
	t.Helper()
	tree, err := newTree(t, DefaultLimits()).Sub(prefix)
	if err != nil {
		t.Fatal(err)
	}
	if tree, err = tree.Only(folder); err != nil {
		t.Fatal(err)
	}
	for _, entries := range layers {
		if err := tree.UntarLayer(context.Background(), bytes.NewReader(archive(t, entries...)), Uncompressed); err != nil {
			t.Fatal(err)
		}
	}
	inside := func(files map[string]string) map[string]string {
		found := map[string]string{}
		for name, content := range files {
			if within(strings.TrimSuffix(name, "/"), folder) {
				found[name] = content
			}
		}
		return found
	}
	got := contents(t, tree.FS())
	if diff := cmp.Diff(inside(all), inside(got)); diff != "" {
		t.Errorf("only %s: %s", folder, diff)
	}
	for name := range got {
		if !within(strings.TrimSuffix(name, "/"), folder) && !within(folder, strings.TrimSuffix(name, "/")) {
			t.Errorf("only %s: %s is unpacked, too", folder, name)
		}
	}
}

func TestM10LayerRefusals(t *testing.T) {
	cases := map[string]struct {
		reason  string
		entries []tar.Header
	}{
		"WhiteoutUp":      {"a whiteout must not remove what is above", []tar.Header{file("m/.wh...", "")}},
		"WhiteoutSelf":    {"nor the folder itself", []tar.Header{file("m/.wh..", "")}},
		"WhiteoutNothing": {"nor nothing", []tar.Header{file("m/.wh.", "")}},
		"WhiteoutOutside": {"names are checked as any other", []tar.Header{file("../.wh.m", "")}},
		"OwnFolder":       {"a layer does not cover its own folder", []tar.Header{file("a/b", ""), file("a", "")}},
		"OwnFile":         {"nor its own file", []tar.Header{file("a", ""), file("a/b", "")}},
		"Device":          {"devices are not content", []tar.Header{{Typeflag: tar.TypeChar, Name: "a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			if err := tree.WriteFile("m/a", bytes.NewReader(nil)); err != nil {
				t.Fatal(err)
			}
			err := tree.UntarLayer(context.Background(), bytes.NewReader(archive(t, tc.entries...)), Uncompressed)
			if ReasonOf(err) != InvalidContent {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestM4WhiteoutsCostOneEntryEach(t *testing.T) {
	limits := DefaultLimits()
	limits.Entries = 2000
	tree := newTree(t, limits)
	var files, whiteouts []tar.Header
	for i := range 1000 {
		files = append(files, file(fmt.Sprintf("f%d", i), ""))
		whiteouts = append(whiteouts, file(".wh..wh..opq", ""))
	}
	if err := tree.UntarLayer(context.Background(), bytes.NewReader(archive(t, files...)), Uncompressed); err != nil {
		t.Fatal(err)
	}
	if err := tree.UntarLayer(context.Background(), bytes.NewReader(archive(t, whiteouts...)), Uncompressed); err != nil {
		t.Fatal(err)
	}
	err := tree.UntarLayer(context.Background(), bytes.NewReader(archive(t, whiteouts[0])), Uncompressed)
	if ReasonOf(err) != LimitExceeded {
		t.Errorf("whiteouts are entries: %v", err)
	}
}
