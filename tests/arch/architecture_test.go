// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// maxDescription is how many characters a package may be described with in docs/architecture.md. More belongs into its comment.
const maxDescription = 110

// TestPackagesAreListed compares the section Packages of docs/architecture.md with `go list ./...`.
//
// Why: the list is how a new developer finds a package, and nothing else says that it is incomplete.
// Remedy: add a line, sorted where it belongs: the path, relative to the line above with less indentation, and what the package does.
func TestPackagesAreListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for _, p := range listAll(t, "./...") {
		packages = append(packages, inModule(p.ImportPath))
	}
	isFolder := func(name string) bool {
		info, err := os.Stat(filepath.Join(root(t), name))
		return err == nil && info.IsDir()
	}
	for _, problem := range listProblems(page, packages, isFolder) {
		t.Error("docs/architecture.md, section Packages: " + problem)
	}
}

// listedPath is a line of the list: two spaces of indentation a level, a path, and a description.
var listedPath = regexp.MustCompile(`^((?:  )*)(\S+) {2,}(\S.*)$`)

// listProblems returns what the list of packages in a page lacks, and what it has too much.
func listProblems(page []byte, packages []string, isFolder func(string) bool) []string {
	_, section, _ := bytes.Cut(page, []byte("\n## Packages\n"))
	_, block, _ := bytes.Cut(section, []byte("\n```text\n"))
	block, _, found := bytes.Cut(block, []byte("\n```"))
	if !found {
		return []string{"there is no list: begin it with ```text below the heading"}
	}
	var problems, above []string
	listed := map[string]bool{}
	for line := range strings.SplitSeq(string(block), "\n") {
		parts := listedPath.FindStringSubmatch(line)
		if parts == nil || len(parts[1])/2 > len(above) {
			problems = append(problems, fmt.Sprintf("%q is not a path below the one above, two spaces and a description", line))
			continue
		}
		above = append(above[:len(parts[1])/2], parts[2])
		name := path.Join(above...)
		switch {
		case listed[name]:
			problems = append(problems, name+" is listed twice: remove one of the lines")
		case !slices.Contains(packages, name) && !isFolder(name):
			problems = append(problems, name+" does not exist: remove the line")
		case len(parts[3]) > maxDescription:
			problems = append(problems, fmt.Sprintf("%s has a description of %d characters, more than %d: say what it does in fewer words",
				name, len(parts[3]), maxDescription))
		}
		listed[name] = true
	}
	for _, name := range packages {
		if !listed[name] {
			problems = append(problems, name+" is not listed: add a line that says what it does")
		}
	}
	return problems
}

func TestListProblems(t *testing.T) {
	packages := []string{"api", "internal/a", "internal/a/b"}
	isFolder := func(name string) bool { return name == "internal" }
	for name, tt := range map[string]struct {
		reason, list string
		want         []string
	}{
		"complete":      {"a folder without code may stand above packages", "api  the types\ninternal  the code\n  a  does this\n    b  and that", nil},
		"whole paths":   {"a path may be longer than a name", "api  the types\ninternal/a  does this\n  b  and that", nil},
		"missing":       {"a package was added", "api  the types\ninternal/a  does this", []string{"internal/a/b is not listed: add a line that says what it does"}},
		"gone":          {"a package was removed or renamed", "api  the types\ninternal/a  does this\n  b  and that\n  c  no more", []string{"internal/a/c does not exist: remove the line"}},
		"twice":         {"one package, one line", "api  the types\napi  the types\ninternal/a  this\n  b  that", []string{"api is listed twice: remove one of the lines"}},
		"several names": {"each has a description of its own", "api  the types\ninternal/a  this\n  b c  that", []string{`"  b c  that" is not a path below the one above, two spaces and a description`, "internal/a/b is not listed: add a line that says what it does"}},
		"too deep":      {"there is no line above to be relative to", "  api  the types\napi  the types\ninternal/a  this\n  b  that", []string{`"  api  the types" is not a path below the one above, two spaces and a description`}},
		"no words":      {"a name alone explains nothing", "api\napi  the types\ninternal/a  this\n  b  that", []string{`"api" is not a path below the one above, two spaces and a description`}},
		"long":          {"the comment of the package has the rest", "api  " + strings.Repeat("x", maxDescription+1) + "\ninternal/a  this\n  b  that", []string{fmt.Sprintf("api has a description of %d characters, more than %d: say what it does in fewer words", maxDescription+1, maxDescription)}},
	} {
		page := "# Architecture\n\n## Packages\n\n```text\n" + tt.list + "\n```\n"
		if diff := cmp.Diff(tt.want, listProblems([]byte(page), packages, isFolder)); diff != "" {
			t.Errorf("%s (%s): problems (-want +got):\n%s", name, tt.reason, diff)
		}
	}
	if got := listProblems([]byte("# Architecture\n"), packages, isFolder); len(got) != 1 {
		t.Errorf("a page without a list has the problems %q, want one", got)
	}
}
