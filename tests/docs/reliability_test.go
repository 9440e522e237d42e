// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// notInTests are the cases that no single test asserts.
var notInTests = map[string]string{"S4": "the race detector runs in make test-reliability"}

var (
	caseRow  = regexp.MustCompile(`(?m)^\| ([FMTS]\d+[a-z]?) \|`)
	caseTest = regexp.MustCompile(`\bfunc Test([FMTS]\d+b?)[A-Z]`)
	caseID   = regexp.MustCompile(`(?:\b|Test|")([FMTS]\d+b?)(?:\b|[A-Z_])`)
)

// namedTest is a test that a row names.
var namedTest = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")

// TestRolloutCases: each test that a row of a rollout case names exists.
func TestRolloutCases(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| R") {
			rows++
			for _, found := range namedTest.FindAllStringSubmatch(line, -1) {
				wanted[found[1]] = true
			}
		}
	}
	if rows < 30 || len(wanted) < 30 {
		t.Fatalf("%d rows name %d tests", rows, len(wanted))
	}
	err = fs.WalkDir(os.DirFS("../.."), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile("../../" + path)
		for name := range wanted {
			if strings.Contains(string(source), "\nfunc "+name+"(") {
				delete(wanted, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range wanted {
		t.Errorf("docs/dev/reliability.md names %s, and there is no such test", name)
	}
}

// TestReliabilityCases: docs/dev/reliability.md and the tests name the same cases.
func TestReliabilityCases(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range caseRow.FindAllStringSubmatch(string(page), -1) {
		if listed[row[1]] {
			t.Errorf("the page has two rows for %s", row[1])
		}
		listed[row[1]] = true
	}
	if len(listed) < 90 {
		t.Fatalf("only %d cases found in the page", len(listed))
	}
	named := map[string]bool{}
	err = fs.WalkDir(os.DirFS("../.."), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile("../../" + path)
		for _, found := range caseTest.FindAllStringSubmatch(string(source), -1) {
			if !listed[found[1]] {
				t.Errorf("%s: Test%s… names a case that docs/dev/reliability.md does not list", path, found[1])
			}
		}
		for _, found := range caseID.FindAllStringSubmatch(string(source), -1) {
			named[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := range listed {
		if !named[id] && notInTests[id] == "" {
			t.Errorf("docs/dev/reliability.md lists %s, and no test names it", id)
		}
	}
}
