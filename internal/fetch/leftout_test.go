// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch/links"
)

// TestF54LeftOut: links are named, however they come into the tree, and those that a converter would read are known.
func TestF54LeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		links      []string
		files      []string // written afterwards
		want       []string
		meaningful []string
	}{
		"Manifest":   {"its object would be pruned", []string{"b.yaml", "a/x.YML", "c.json"}, nil, []string{"a/x.YML", "b.yaml", "c.json"}, []string{"a/x.YML", "b.yaml", "c.json"}},
		"Chart":      {"files of a chart", []string{"Chart.yaml", "templates/_helpers.tpl", "charts/sub.tgz"}, nil, []string{"Chart.yaml", "charts/sub.tgz", "templates/_helpers.tpl"}, []string{"Chart.yaml", "charts/sub.tgz", "templates/_helpers.tpl"}},
		"Folder":     {"a folder of a bundle", []string{"manifests", "x/crds"}, nil, []string{"manifests", "x/crds"}, []string{"manifests", "x/crds"}},
		"Ordinary":   {"nothing reads them by their names, but docs may have been a folder with manifests", []string{"LICENSE", "bin/sh", "docs"}, nil, []string{"LICENSE", "bin/sh", "docs"}, nil},
		"Replaced":   {"another layer has the file", []string{"a.yaml", "b.yaml"}, []string{"a.yaml"}, []string{"b.yaml"}, []string{"b.yaml"}},
		"Repeatedly": {"named once", []string{"a.yaml", "a.yaml"}, nil, []string{"a.yaml"}, []string{"a.yaml"}},
		"None":       {"no link", nil, []string{"a.yaml"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			sub, err := tree.Sub(".")
			if err != nil {
				t.Fatal(err)
			}
			for _, link := range tc.links {
				if err := sub.SkipLink(link); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range tc.files {
				if err := tree.WriteFile(file, strings.NewReader("x")); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, tree.LeftOut()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if got := links.Meaningful(tree.LeftOut()); !slices.Equal(got, tc.meaningful) {
				t.Errorf("%s: meaningful are %q", tc.reason, got)
			}
		})
	}
}

// Of too many links it is known that there were more, unless these look like no file of a bundle.
func TestF54TooManyLeftOut(t *testing.T) {
	for pattern, more := range map[string]bool{"%d.yaml": true, "bin/%d": false} {
		tree := newTree(t, DefaultLimits())
		for i := range 1005 {
			if err := tree.SkipLink(fmt.Sprintf(pattern, i)); err != nil {
				t.Fatal(err)
			}
		}
		got := tree.LeftOut()
		if last := got[len(got)-1]; (last == links.Everything) != more || len(got) > 1001 {
			t.Errorf("%s: %d are named, the last is %s", pattern, len(got), last)
		}
	}
}

// What was left out of an archive is named in it, below the folder that it is unpacked into.
func TestF54LeftOutOfAnArchive(t *testing.T) {
	for name, tc := range map[string]struct {
		record string
		want   []string
	}{
		"names":     {`["b.yaml","a.yaml"]`, []string{"base/a.yaml", "base/b.yaml"}},
		"outside":   {`["../a.yaml","/etc/b.yaml","c.yaml"]`, []string{"base/c.yaml"}},
		"no list":   {`{"a":1}`, nil},
		"no string": {`[1]`, nil},
		"present":   {`["there.yaml"]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, header := range []*tar.Header{
				{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"SATCHEL.leftout": tc.record}},
				{Typeflag: tar.TypeReg, Name: "there.yaml", Mode: 0o644},
			} {
				if err := w.WriteHeader(header); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			tree := newTree(t, DefaultLimits())
			below, err := tree.Sub("base")
			if err == nil {
				err = below.Untar(t.Context(), &archive)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tree.LeftOut()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
