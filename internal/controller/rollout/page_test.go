// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/controller/rollout"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/tests/page"
)

// pageName is the page about the process.
const pageName = "rollout-controller.md"

// TestPageHasTheFlags wants a row about each flag of this controller, with its default, and no flag that does not exist.
func TestPageHasTheFlags(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var options rollout.Options
	options.BindFlags(flags)
	common := manager.Options{}
	common.BindFlags(flags)
	page.HasFlags(t, pageName, flags)
}

// TestPageHasTheMetrics wants a row about each metric of the controller, and no other.
func TestPageHasTheMetrics(t *testing.T) {
	var code strings.Builder
	for _, file := range []string{"figures/figures.go", "../pipeline/metrics.go", "../pipeline/running.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	want, have := page.Found(`"((?:satchel|gotk)_\w+)"`, code.String()), page.Found("(?m)^\\| `((?:satchel|gotk)_\\w+)` \\|", page.Read(t, pageName))
	if diff := cmp.Diff(want, have); diff != "" || len(want) < 2 {
		t.Errorf("metrics in docs/%s (-want +got):\n%s", pageName, diff)
	}
}

// TestArchitectureHasTheSteps wants the table of docs/architecture.md to have each step, in order.
func TestArchitectureHasTheSteps(t *testing.T) {
	_, section, _ := strings.Cut(page.Read(t, "architecture.md"), "\n## What happens to a BundleRollout\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var have []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z-]+) \| `).FindAllStringSubmatch(section, -1) {
		have = append(have, row[1])
	}
	if diff := cmp.Diff(rollout.Steps(), have); diff != "" {
		t.Errorf("steps in docs/architecture.md (-want +got):\n%s", diff)
	}
}
