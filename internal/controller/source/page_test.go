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
	"github.com/satchel-dev/satchel/internal/fetch/verify/cosign"
	"github.com/satchel-dev/satchel/internal/fetch/verify/notation"
)

// page is docs/bundlesource.md, which api/v1alpha1 tests as well.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/bundlesource.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageHasTheFlags wants a row about each flag of this controller, with its default, and no flag that does not exist.
func TestPageHasTheFlags(t *testing.T) {
	text := page(t)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var options source.Options
	options.BindFlags(flags)
	flags.Int("concurrent", source.Concurrent, "of all controllers")
	flags.String("events-addr", "", "of all controllers")
	flags.String("watch-label-selector", "", "of all controllers")
	flags.VisitAll(func(f *pflag.Flag) {
		_, row, found := strings.Cut(text, "\n| `--"+f.Name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		value := strings.Trim(f.DefValue, "[]")
		switch {
		case !found:
			t.Errorf("docs/bundlesource.md has no row about --%s", f.Name)
		case value != "" && !strings.Contains(row, "`"+value+"`"):
			t.Errorf("the row about --%s in docs/bundlesource.md does not tell the default %s: %s", f.Name, value, row)
		}
	})
	for _, match := range regexp.MustCompile("`--([a-z-]+)[`=]").FindAllStringSubmatch(text, -1) {
		if flags.Lookup(match[1]) == nil && match[1] != "feature-gates" { // of Flux
			t.Errorf("the page names --%s, which this controller does not have", match[1])
		}
	}
}

// TestPageHasTheKeysOfSecrets wants the section about Secrets to name each key that is read.
func TestPageHasTheKeysOfSecrets(t *testing.T) {
	_, section, found := strings.Cut(page(t), "\n## Secrets\n")
	if !found {
		t.Fatal("the section is missing")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	keys := []string{"tls.crt", "tls.key", ".dockerconfigjson", ".dockercfg", cosign.KeySuffix, notation.PolicyName}
	for _, file := range []string{"credentials.go", "trust.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^\tkey\w+ += "([^"]+)"$`).FindAllStringSubmatch(string(code), -1) {
			keys = append(keys, match[1])
		}
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
	want := []string{"gotk_reconcile_duration_seconds", "satchel_conditions", "satchel_suspended"}
	for _, file := range []string{"figures.go", "measures.go", "../step/metrics.go", "../notify/notify.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`"(satchel_\w+)"`).FindAllStringSubmatch(string(code), -1) {
			want = append(want, match[1])
		}
	}
	var have []string
	for _, match := range regexp.MustCompile("(?m)^\\| `((?:satchel|gotk)_\\w+)` \\|").FindAllStringSubmatch(page(t), -1) {
		have = append(have, match[1])
	}
	if diff := cmp.Diff(want, have, cmpopts.SortSlices(strings.Compare)); diff != "" || len(want) < 2 {
		t.Errorf("metrics in docs/bundlesource.md (-want +got):\n%s", diff)
	}
}
