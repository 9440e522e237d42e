// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/internal/controller/source/process"
	"github.com/satchel-dev/satchel/internal/fetch/verify/cosign"
	"github.com/satchel-dev/satchel/internal/fetch/verify/notation"
	"github.com/satchel-dev/satchel/tests/page"
)

// pageName is the page about the process.
const pageName = "source-controller.md"

// TestPageHasTheFlags wants a row about each flag of this controller, with its default, and no flag that does not exist.
func TestPageHasTheFlags(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var options process.Options
	options.BindFlags(flags)
	flags.Int("concurrent", process.Concurrent, "of all controllers")
	flags.String("events-addr", "", "of all controllers")
	flags.String("watch-label-selector", "", "of all controllers")
	page.HasFlags(t, pageName, flags)
}

// TestPageHasTheKeysOfSecrets wants the section about Secrets to name each key that is read.
func TestPageHasTheKeysOfSecrets(t *testing.T) {
	_, section, found := strings.Cut(page.Read(t, "guides/private-registry.md"), "\n## Keys of Secrets\n")
	if !found {
		t.Fatal("the section is missing")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	keys := []string{"tls.crt", "tls.key", ".dockerconfigjson", ".dockercfg", cosign.KeySuffix, notation.PolicyName}
	for _, file := range []string{"../../sourcefetch/credentials/credentials.go", "../../sourcefetch/credentials/verifiers.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, page.Found(`(?m)^\tkey\w+ += "([^"]+)"$`, string(code))...)
	}
	if len(keys) < 15 {
		t.Errorf("only %d keys were found in the code", len(keys))
	}
	for _, key := range keys {
		if !strings.Contains(section, "`"+key+"`") {
			t.Errorf("the section does not name the key %s", key)
		}
	}
}

// TestPageHasTheMetrics wants a row about each metric of sources and of the store, and no other.
func TestPageHasTheMetrics(t *testing.T) {
	want := []string{"gotk_reconcile_duration_seconds"}
	for _, file := range []string{"../upstream/figures/store.go", "../upstream/figures/measures.go", "../pipeline/metrics.go", "../notify/notify.go", "../pipeline/running.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, page.Found(`"(satchel_\w+)"`, string(code))...)
	}
	have := page.Found("(?m)^\\| `((?:satchel|gotk)_\\w+)` \\|", page.Read(t, pageName))
	if diff := cmp.Diff(want, have, cmpopts.SortSlices(strings.Compare)); diff != "" || len(want) < 2 {
		t.Errorf("metrics in docs/source-controller.md (-want +got):\n%s", diff)
	}
}

// TestArchitectureHasTheSteps wants the table of docs/architecture.md to have each step, in order.
func TestArchitectureHasTheSteps(t *testing.T) {
	_, section, _ := strings.Cut(page.Read(t, "architecture.md"), "\n## What happens to a BundleSource\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var have []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z-]+) \| `).FindAllStringSubmatch(section, -1) {
		have = append(have, row[1])
	}
	if diff := cmp.Diff(new(source.Reconciler).Steps(), have); diff != "" {
		t.Errorf("steps in docs/architecture.md (-want +got):\n%s", diff)
	}
}
