// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/tests/installation"
	"github.com/satchel-dev/satchel/tests/page"
)

// TestTroubleshooting wants a row about each reason of the API, once, and about no other.
func TestTroubleshooting(t *testing.T) {
	text := page.Read(t, "troubleshooting.md")
	want := reasons(t)
	if len(want) < 50 {
		t.Fatalf("only %d reasons were found in the API", len(want))
	}
	for _, reason := range want {
		if rows := strings.Count(text, "\n| `"+reason+"` |"); rows != 1 {
			t.Errorf("docs/troubleshooting.md has %d rows about the reason %s, want one under its symptom", rows, reason)
		}
	}
	if rows := page.Found("(?m)^\\| `(\\w+)` \\|", text); len(rows) > len(want) {
		t.Errorf("docs/troubleshooting.md has %d reasons, the API %d: %v", len(rows), len(want), rows)
	}
}

// reasons are the values of the constants Reason* of the API.
func reasons(t *testing.T) []string {
	t.Helper()
	fluxNames := map[string]string{
		"SucceededReason": meta.SucceededReason, "ProgressingReason": meta.ProgressingReason,
		"ProgressingWithRetryReason": meta.ProgressingWithRetryReason, "SuspendedReason": meta.SuspendedReason,
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(installation.Root(), "api", "v1alpha1", "conditions.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, isSpec := node.(*ast.ValueSpec)
		if !isSpec || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		switch value := spec.Values[0].(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, text)
		case *ast.SelectorExpr:
			if fluxNames[value.Sel.Name] == "" {
				t.Fatalf("add meta.%s to this test", value.Sel.Name)
			}
			found = append(found, fluxNames[value.Sel.Name])
		}
		return true
	})
	return found
}
