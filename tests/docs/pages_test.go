// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/tests/docs/markdown"
	"github.com/satchel-dev/satchel/tests/installation"
)

// pages are the pages of the repository, by their path.
func pages(t *testing.T) map[string]markdown.Page {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md")
	list.Dir = installation.Root()
	names, err := list.Output()
	if err != nil {
		t.Fatalf("asking git for the pages: %v", err)
	}
	found := map[string]markdown.Page{}
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(installation.Root(), name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[name], err = markdown.Parse(name, string(text)); err != nil {
			t.Error(err)
		}
	}
	return found
}

// generated tells whether a page is written by a program, which has a test of its own.
func generated(name string) bool {
	return strings.HasPrefix(name, "docs/reference/")
}

// executed are the pages that have blocks, in order: README first, and those that take Satchel away last.
func executed(all map[string]markdown.Page) []markdown.Page {
	var chosen []markdown.Page
	for name, page := range all {
		ours := name == "README.md" || strings.HasPrefix(name, "docs/") && !generated(name)
		if ours && len(page.Steps) > 0 {
			chosen = append(chosen, page)
		}
	}
	slices.SortFunc(chosen, func(a, b markdown.Page) int {
		_, aLast := a.Mark("last")
		_, bLast := b.Mark("last")
		switch {
		case aLast && !bLast:
			return 1
		case bLast && !aLast:
			return -1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return chosen
}
