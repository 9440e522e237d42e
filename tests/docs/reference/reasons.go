// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// Reasons is a page about the conditions and their reasons, from the file of the API that names them. What Flux
// names comes as a map from the names of its constants to their values.
func Reasons(source []byte, flux map[string]string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", source, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("reading the conditions: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Conditions and reasons\n\n"+written+"[Troubleshooting](../troubleshooting.md) says what to do about each.\n", "api/v1alpha1/conditions.go")
	for _, declaration := range file.Decls {
		group, isGroup := declaration.(*ast.GenDecl)
		if !isGroup || group.Tok != token.CONST {
			continue
		}
		if !group.Lparen.IsValid() {
			group.Specs[0].(*ast.ValueSpec).Doc = group.Doc //nolint:errcheck // a constant is a value
			group.Doc = &ast.CommentGroup{List: []*ast.Comment{{Text: "// Condition of all kinds."}}}
		}
		fmt.Fprintf(&b, "\n## %s\n\n| Name | Description |\n|---|---|\n", strings.TrimSuffix(cell(group.Doc.Text()), "."))
		for _, spec := range group.Specs {
			row(&b, spec, flux)
		}
	}
	return b.String(), nil
}

// row writes what a constant of the API is and means.
func row(b *strings.Builder, spec ast.Spec, flux map[string]string) {
	value, isValue := spec.(*ast.ValueSpec)
	if !isValue || len(value.Values) != 1 {
		return
	}
	name := ""
	switch v := value.Values[0].(type) {
	case *ast.BasicLit:
		name = strings.Trim(v.Value, `"`)
	case *ast.SelectorExpr:
		name = flux[v.Sel.Name]
	}
	meaning := strings.TrimPrefix(cell(value.Doc.Text()), value.Names[0].Name+" ")
	fmt.Fprintf(b, "| `%s` | %s |\n", name, meaning)
}
