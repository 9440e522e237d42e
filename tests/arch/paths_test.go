// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedFunction is a function in docs/dev/paths.md: a folder, a type unless it is a function, and a name.
var namedFunction = regexp.MustCompile("(?m)^\\| `(internal/[a-z0-9/]+)\\.(?:([A-Za-z]+)\\.)?([A-Za-z]+)` \\|")

// Why: a page that lists functions is wrong as soon as one of them is renamed or moved.
// Remedy: correct the line in docs/dev/paths.md.
func TestFunctionsOfPathsExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "docs/dev/paths.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := namedFunction.FindAllStringSubmatch(string(page), -1)
	if len(found) < 30 {
		t.Fatalf("%d functions are listed: are they written differently now?", len(found))
	}
	for _, function := range found {
		folder, receiver, name := function[1], function[2], function[3]
		if !declares(t, filepath.Join(root(t), folder), receiver, name) {
			t.Errorf("docs/dev/paths.md lists %s, which does not exist", strings.Trim(function[0], "| `"))
		}
	}
}

// declares tells whether a package has a function, or a type a method.
func declares(t *testing.T, folder, receiver, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && function.Name.Name == name && receiverOf(function) == receiver {
				return true
			}
		}
	}
	return false
}

// receiverOf is the name of the type of a method; "" of a function.
func receiverOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	kind := function.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if named, ok := kind.(*ast.Ident); ok {
		return named.Name
	}
	return ""
}
