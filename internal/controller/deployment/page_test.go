// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/controller/deployment/process"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/tests/page"
)

// pageName is the page about the process.
const pageName = "deployment-controller.md"

// TestPageHasTheFlags wants a row about each flag of this controller, with its default, and no flag that does not exist.
func TestPageHasTheFlags(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var options process.Options
	options.BindFlags(flags)
	var common manager.Options
	common.BindFlags(flags)
	page.HasFlags(t, pageName, flags)
}

// code is the code of the controller and of the packages that register its metrics.
func code(t *testing.T) string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.go", "*/*.go", "../pipeline/*.go", "../notify/*.go", "../../worker/metrics.go"} {
		matching, err := filepath.Glob(pattern)
		if err != nil || len(matching) == 0 {
			t.Fatalf("%s has no code (%v)", pattern, err)
		}
		files = append(files, matching...)
	}
	var all strings.Builder
	for _, file := range files {
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

// TestPageHasTheMetrics wants a row about each metric of the controller, and no other.
func TestPageHasTheMetrics(t *testing.T) {
	want, have := page.Found(`"((?:satchel|gotk)_\w+)"`, code(t)), page.Found("(?m)^\\| `((?:satchel|gotk)_\\w+)` \\|", page.Read(t, pageName))
	if diff := cmp.Diff(want, have); diff != "" || len(want) < 2 {
		t.Errorf("metrics in docs/deployment-controller.md (-want +got):\n%s", diff)
	}
}

// TestPageHasTheEvents wants a row of docs/status.md about each event that the controller records, and no other.
func TestPageHasTheEvents(t *testing.T) {
	_, section, _ := strings.Cut(page.Read(t, "status.md"), "\n## Events of a BundleDeployment\n")
	section, _, _ = strings.Cut(section, "\n## ")
	want := page.Found(`(?:EventTypeWarning, |EventTypeNormal, |Events\.(?:Normal|Warning)\([\w.&]+, |Announcement\{Reason: )"(\w+)"`, code(t))
	have := page.Found("(?m)^\\| `([A-Za-z]+)` \\| (?:Normal|Warning) \\|", section)
	if diff := cmp.Diff(want, have); diff != "" || len(want) < 2 {
		t.Errorf("events in docs/status.md (-want +got):\n%s", diff)
	}
}

// TestArchitectureHasTheSteps wants the table of docs/architecture.md to have each step, in order, with its condition.
func TestArchitectureHasTheSteps(t *testing.T) {
	_, section, _ := strings.Cut(page.Read(t, "architecture.md"), "\n## What happens to a BundleDeployment\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var have [][2]string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z-]+) \| .* \|\s*(\w*) *\|$`).FindAllStringSubmatch(section, -1) {
		have = append(have, [2]string{row[1], row[2]})
	}
	if diff := cmp.Diff(deployment.Steps(), have); diff != "" {
		t.Errorf("steps in docs/architecture.md (-want +got):\n%s", diff)
	}
}
