// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// statusPage describes the conditions of both kinds. Fields are on pages that are generated, and reasons on the page about
// troubleshooting, of which tests/docs has tests.
const statusPage = "../../docs/status.md"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// metaNames are the names that Flux has for all.
var metaNames = map[string]string{"ReadyCondition": meta.ReadyCondition}

// conditions are the values of the constants in conditions.go, in the blocks of which the comment begins in one way.
func conditions(t *testing.T, comments ...string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, declaration := range parsed.Decls {
		block, ok := declaration.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		if !slices.ContainsFunc(comments, func(c string) bool { return strings.HasPrefix(block.Doc.Text(), c) }) {
			continue
		}
		for _, spec := range block.Specs {
			constant := spec.(*ast.ValueSpec) //nolint:errcheck,forcetypeassert // constants have no other form
			value := valueOf(constant.Values[0])
			if value == "" {
				t.Errorf("the value of %s is not known to this test", constant.Names[0].Name)
			}
			found = append(found, value)
		}
	}
	return found
}

func valueOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		return strings.Trim(e.Value, `"`)
	case *ast.SelectorExpr:
		return metaNames[e.Sel.Name]
	}
	return ""
}

// section returns the part of the page below a heading.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n#")
	return rest
}

// firsts are the names that the rows of a table begin with.
func firsts(text string) []string {
	var names []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// TestPageHasTheConditions wants a row about each condition that the API names for a kind, and no other.
func TestPageHasTheConditions(t *testing.T) {
	page := read(t, statusPage)
	for _, kind := range []string{v1alpha1.BundleSourceKind, v1alpha1.BundleDeploymentKind} {
		want := append(conditions(t, "Conditions of "+kind, "ReadyCondition"), meta.ReconcilingCondition, meta.StalledCondition)
		if len(want) < 7 {
			t.Errorf("%s has only %d conditions", kind, len(want))
		}
		have := firsts(section(t, page, "## Conditions of a "+kind))
		for _, name := range want {
			if !slices.Contains(have, name) {
				t.Errorf("docs/status.md has no row about the condition %s of %s", name, kind)
			}
		}
		for _, name := range have {
			if !slices.Contains(want, name) {
				t.Errorf("docs/status.md has a row about the condition %s, which no %s has", name, kind)
			}
		}
	}
}
