// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/registryv1file"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/deploymentconfig"
)

const (
	registryV1Page  = "../../docs/registryv1.md"
	differencesPage = "../../docs/registryv1-differences.md"
)

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDifferencesAreDocumented checks that each deliberate difference from OLM v1 has a row, in order, about both behaviours.
func TestDifferencesAreDocumented(t *testing.T) {
	const differences = 19
	section, _, _ := strings.Cut(readPage(t, differencesPage), "\n## ")
	next := 1
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		number, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		if number != next {
			t.Errorf("after number %d comes %d", next-1, number)
		}
		next = number + 1
		if len(cells) != 4 || len(strings.TrimSpace(cells[1])) < 20 || len(strings.TrimSpace(cells[2])) < 10 {
			t.Errorf("the row of number %d does not say what both do: %s", number, line)
		}
	}
	if next != differences+1 {
		t.Errorf("the table ends at number %d of %d", next-1, differences)
	}
}

// TestRefusalsAreDocumented checks that the documented rules that OLM v1 lacks are those of the converter.
func TestRefusalsAreDocumented(t *testing.T) {
	_, section, found := strings.Cut(readPage(t, differencesPage), "\n| Rule | Refused | Why |\n")
	if !found {
		t.Fatal("the table is missing")
	}
	section, _, _ = strings.Cut(section, "\n\n")
	var rules []string
	for _, match := range regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \| [^|]{10,} \| [^|]{10,} \|$`).FindAllStringSubmatch(section, -1) {
		rules = append(rules, match[1])
	}
	if diff := cmp.Diff([]string{"D1", "P3", "P10", "P13", "S1", "V5", "W1", "W2", "W3", "W7"}, rules); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sources, err := filepath.Glob("../convert/registryv1/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	parts, err := filepath.Glob("../convert/registryv1/*/*.go")
	if err != nil || len(parts) == 0 {
		t.Fatal("no sources", err)
	}
	sources = append(sources, parts...)
	var code strings.Builder
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(source, "_test.go") {
			code.Write(text)
		}
	}
	for _, rule := range rules {
		if !strings.Contains(code.String(), `"`+rule+`"`) {
			t.Errorf("the converter has no rule %s", rule)
		}
	}
}

// blocks returns the code blocks of a language.
func blocks(page, language string) []string {
	var found []string
	for _, match := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```\n").FindAllStringSubmatch(page, -1) {
		found = append(found, match[1])
	}
	return found
}

// TestPageOptions checks that each option has a section with a valid example, and that the API accepts all YAML of the page.
func TestPageOptions(t *testing.T) {
	page := readPage(t, registryV1Page)
	for _, text := range blocks(page, "yaml") {
		if strings.Contains(text, "\nkind: BundleDeployment\n") {
			var d v1alpha1.BundleDeployment
			if err := registryv1file.DecodeStrictly([]byte(text), &d); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
			continue
		}
		if _, err := registryv1file.ParseConfig([]byte(text)); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	options := reflect.TypeFor[v1alpha1.RegistryV1Options]()
	for i := range options.NumField() {
		name, _, _ := strings.Cut(options.Field(i).Tag.Get("json"), ",")
		if !strings.Contains(page, "\n### "+name+"\n\n<!-- test: in BundleDeployment spec.registryV1 -->\n```yaml\n"+name+":") {
			t.Errorf("the page has no section about %s that begins with an example", name)
		}
	}
	config := reflect.TypeFor[deploymentconfig.Config]()
	for i := range config.NumField() {
		if name, _, _ := strings.Cut(config.Field(i).Tag.Get("json"), ","); !strings.Contains(page, "\n  "+name+":") {
			t.Errorf("the example of deploymentConfig lacks %s", name)
		}
	}
}

// TestPageCommands parses each command line of the page as far as its flags.
func TestPageCommands(t *testing.T) {
	seen := 0
	for _, text := range blocks(readPage(t, registryV1Page), "sh") {
		for line := range strings.SplitSeq(text, "\n") {
			_, words, found := strings.Cut(line, "satchel ")
			if !found {
				continue
			}
			seen++
			words, _, _ = strings.Cut(words, "#")
			words, _, _ = strings.Cut(words, ">")
			fields := strings.Fields(words)
			named, rest, err := rootCommand(testApp(&bytes.Buffer{})).Find(fields)
			if err == nil {
				err = named.ParseFlags(rest)
			}
			if err != nil || named.Name() != fields[0] {
				t.Errorf("%q: %v", line, err)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d command lines were found", seen)
	}
}
