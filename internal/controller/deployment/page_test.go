// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/manager"
)

// page is docs/bundledeployment.md, which api/v1alpha1 tests as well.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/bundledeployment.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageHasTheFlags wants a row about each flag of this controller, with its default, and no flag that does not exist.
func TestPageHasTheFlags(t *testing.T) {
	text := page(t)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var options deployment.Options
	options.BindFlags(flags)
	var process manager.Options
	process.BindFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		_, row, found := strings.Cut(text, "\n| `--"+f.Name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		value := strings.Trim(f.DefValue, "[]")
		switch {
		case !found:
			t.Errorf("docs/bundledeployment.md has no row about --%s", f.Name)
		case value != "" && !strings.Contains(row, "`"+value+"`"):
			t.Errorf("the row about --%s in docs/bundledeployment.md does not tell the default %s: %s", f.Name, value, row)
		}
	})
	for _, match := range regexp.MustCompile("`--([a-z-]+)[`=]").FindAllStringSubmatch(text, -1) {
		if flags.Lookup(match[1]) == nil {
			t.Errorf("the page names --%s, which this controller does not have", match[1])
		}
	}
}

// code is the controller's, with what it registers metrics in.
func code(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no code", err)
	}
	var all strings.Builder
	for _, file := range append(files, "../step/metrics.go", "../notify/notify.go", "../census/census.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// found are the first groups of all matches of a pattern, once each.
func found(pattern, text string) []string {
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		names[match[1]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// TestPageHasTheMetrics wants a row about each metric of the controller, and no other.
func TestPageHasTheMetrics(t *testing.T) {
	want, have := found(`"((?:satchel|gotk)_\w+)"`, code(t)), found("(?m)^\\| `((?:satchel|gotk)_\\w+)` \\|", page(t))
	if diff := cmp.Diff(want, have); diff != "" || len(want) < 2 {
		t.Errorf("metrics in docs/bundledeployment.md (-want +got):\n%s", diff)
	}
}

// TestPageHasTheEvents wants a row about each event that the controller records, and no other.
func TestPageHasTheEvents(t *testing.T) {
	want := found(`(?:EventTypeWarning, |EventTypeNormal, |(?:normal|warning)\(\w+, )"(\w+)"`, code(t))
	have := found("(?m)^\\| `([A-Za-z]+)` \\| (?:Normal|Warning) \\|", page(t))
	if diff := cmp.Diff(want, have); diff != "" || len(want) < 2 {
		t.Errorf("events in docs/bundledeployment.md (-want +got):\n%s", diff)
	}
}
