// SPDX-License-Identifier: Apache-2.0

// Package page compares the pages of docs/ with the code that they are about.
package page

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/tests/installation"
)

// Read is the text of a page, by its name.
func Read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(installation.Root(), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// HasFlags wants a row about each flag, with its default, and no flag that there is not, but for those
// of others.
func HasFlags(t testing.TB, name string, flags *pflag.FlagSet, others ...string) {
	t.Helper()
	text := Read(t, name)
	flags.VisitAll(func(f *pflag.Flag) {
		_, row, found := strings.Cut(text, "\n| `--"+f.Name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		value := strings.Trim(f.DefValue, "[]")
		switch {
		case !found:
			t.Errorf("docs/%s has no row about --%s", name, f.Name)
		case value != "" && !strings.Contains(row, "`"+value+"`"):
			t.Errorf("the row about --%s in docs/%s does not tell the default %s: %s", f.Name, name, value, row)
		}
	})
	for _, flag := range Found("`--([a-z-]+)[`=]", text) {
		if flags.Lookup(flag) == nil && !slices.Contains(others, flag) {
			t.Errorf("docs/%s names --%s, which this controller does not have", name, flag)
		}
	}
}

// Found are the first groups of all matches of a pattern, sorted, once each.
func Found(pattern, text string) []string {
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		names[match[1]] = true
	}
	return slices.Sorted(maps.Keys(names))
}
