// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// violations returns a message for each import that the rule forbids.
func (r importRule) violations(packages []goPackage) []string {
	var found []string
	for _, p := range packages {
		if !matches(p.ImportPath, r.from) || matches(p.ImportPath, r.except) {
			continue
		}
		for _, imported := range p.Imports {
			if matches(imported, r.not) && !matches(imported, r.but) {
				found = append(found, fmt.Sprintf("%s imports %s.\n  Rule: %s (%s).\n  Do this: %s.",
					inModule(p.ImportPath), inModule(imported), r.name, r.why, r.remedy))
			}
		}
	}
	slices.Sort(found)
	return found
}

func TestImports(t *testing.T) {
	packages := listAll(t, "./...")
	for _, p := range packages {
		if p.Error != nil {
			t.Errorf("%s cannot be listed: %s", inModule(p.ImportPath), p.Error.Err)
		}
	}
	for _, rule := range importRules {
		if !anyMatch(packages, rule.from) {
			t.Errorf("the rule %q is about no package at all: %s; correct the rule", rule.name, strings.Join(rule.from, ", "))
		}
		for _, violation := range rule.violations(packages) {
			t.Error(violation)
		}
	}
}

// TestImportRulesBite injects a violation of each rule and wants it found, and nothing else.
func TestImportRulesBite(t *testing.T) {
	for i, rule := range importRules {
		t.Run(fmt.Sprintf("%02d %s", i, rule.name), func(t *testing.T) {
			from := example(rule.from)
			for _, forbidden := range rule.not {
				if matches(example([]string{forbidden}), rule.but) {
					continue
				}
				bad := goPackage{ImportPath: from, Imports: []string{"fmt", example([]string{forbidden})}}
				good := goPackage{ImportPath: module + "/elsewhere", Imports: bad.Imports}
				found := rule.violations([]goPackage{good, bad})
				if len(found) != 1 || !strings.Contains(found[0], rule.remedy) {
					t.Errorf("importing %s into %s: got %q, want one message with the remedy", forbidden, from, found)
				}
			}
		})
	}
}

// TestInjectedImportIsFound adds a file with a forbidden import to the real tree, by an overlay, so that
// everything between the source and the message takes part.
func TestInjectedImportIsFound(t *testing.T) {
	dir := t.TempDir()
	injected := filepath.Join(dir, "injected.go")
	source := "package fetch\n\nimport _ \"" + module + "/internal/convert\"\n"
	if err := os.WriteFile(injected, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root(t), "internal", "fetch", "injected.go"): injected,
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	packages := list(t, "-overlay", file, "./internal/fetch")
	found := importRules[0].violations(packages)
	if len(found) != 1 || !strings.Contains(found[0], "internal/fetch imports internal/convert") {
		t.Errorf("the injected import of internal/convert was not found: %q", found)
	}
}

// violations returns a message for each linked package that the rule forbids.
func (r linkRule) violations(binary string, linked []goPackage) []string {
	var found []string
	for _, p := range linked {
		if matches(p.ImportPath, r.not) && !r.excused(p.ImportPath, linked) {
			found = append(found, fmt.Sprintf("%s links %s.\n  Rule: %s (%s).\n  Do this: %s.",
				inModule(binary), inModule(p.ImportPath), r.name, r.why, r.remedy))
		}
	}
	slices.Sort(found)
	return found
}

// excused tells that only those import a package who may.
func (r linkRule) excused(importPath string, linked []goPackage) bool {
	importers := 0
	for _, p := range linked {
		if slices.Contains(p.Imports, importPath) {
			if importers++; !matches(p.ImportPath, r.behind) {
				return false
			}
		}
	}
	return importers > 0
}

func TestLinks(t *testing.T) {
	binaries := listAll(t, "./cmd/...")
	for _, rule := range linkRules {
		if !anyMatch(binaries, rule.into) {
			t.Errorf("the rule %q is about no binary at all: %s; correct the rule", rule.name, strings.Join(rule.into, ", "))
		}
	}
	for _, binary := range binaries {
		linked := listIn(t, relative(t, binary.Dir), "-deps", ".")
		for _, rule := range linkRules {
			if !matches(binary.ImportPath, rule.into) {
				continue
			}
			for _, violation := range rule.violations(binary.ImportPath, linked) {
				t.Error(violation)
			}
		}
	}
}

// TestLinkRulesExcuse wants an excuse to hold for its importer, and for no other.
func TestLinkRulesExcuse(t *testing.T) {
	rule := linkRule{not: []string{"testing"}, behind: []string{"example.org/excused"}}
	linked := []goPackage{{ImportPath: "testing"}, {ImportPath: "example.org/excused", Imports: []string{"testing"}}}
	if found := rule.violations("cmd/x", linked); len(found) != 0 {
		t.Errorf("got %q", found)
	}
	linked = append(linked, goPackage{ImportPath: "example.org/other", Imports: []string{"testing"}})
	if found := rule.violations("cmd/x", linked); len(found) != 1 {
		t.Errorf("got %q, want one message", found)
	}
}

func TestLinkRulesBite(t *testing.T) {
	for _, rule := range linkRules {
		for _, forbidden := range rule.not {
			linked := []goPackage{{ImportPath: "fmt"}, {ImportPath: example([]string{forbidden})}}
			if found := rule.violations("cmd/x", linked); len(found) != 1 {
				t.Errorf("%s: linking %s: got %q, want one message", rule.name, forbidden, found)
			}
		}
	}
}
