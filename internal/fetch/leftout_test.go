// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestF54LeftOut: links that a converter would read are named, however they come into the tree.
func TestF54LeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		links  []string
		files  []string // written afterwards
		want   []string
	}{
		"Manifest":   {"its object would be pruned", []string{"b.yaml", "a/x.YML", "c.json"}, nil, []string{"a/x.YML", "b.yaml", "c.json"}},
		"Chart":      {"files of a chart", []string{"Chart.yaml", "values.yaml", "templates/_helpers.tpl", "charts/sub.tgz", "templates"}, nil, []string{"Chart.yaml", "charts/sub.tgz", "templates", "templates/_helpers.tpl", "values.yaml"}},
		"Folder":     {"a folder of a bundle", []string{"manifests", "x/crds"}, nil, []string{"manifests", "x/crds"}},
		"Ordinary":   {"nothing reads them", []string{"LICENSE", "README.md", "bin/sh", "docs"}, nil, nil},
		"Replaced":   {"another layer has the file", []string{"a.yaml", "b.yaml"}, []string{"a.yaml"}, []string{"b.yaml"}},
		"Repeatedly": {"named once", []string{"a.yaml", "a.yaml"}, nil, []string{"a.yaml"}},
		"None":       {"no link", nil, []string{"a.yaml"}, nil},
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
		})
	}
	tree := newTree(t, DefaultLimits())
	for i := range 100 {
		if err := tree.SkipLink(fmt.Sprintf("%d.yaml", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(tree.LeftOut()) != maxLeftOut {
		t.Errorf("%d are named", len(tree.LeftOut()))
	}
}
