// SPDX-License-Identifier: Apache-2.0

// Package reference writes pages of docs/reference from what the code says: the fields of each kind from its
// CustomResourceDefinition, and the reasons of conditions from the comments of the API.
package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// written says where a page comes from.
const written = "<!-- Written by `make generate` from %s. -->\n\n"

// Fields is a page about all fields of a kind, from its CRD.
func Fields(definition []byte) (name, page string, err error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(definition, &crd); err != nil {
		return "", "", fmt.Errorf("reading the CRD: %w", err)
	}
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Schema == nil {
		return "", "", fmt.Errorf("%s has %d versions, and a page is about one", crd.Name, len(crd.Spec.Versions))
	}
	kind, schema := crd.Spec.Names.Kind, crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	var b strings.Builder
	fmt.Fprintf(&b, "# Fields of %s\n\n"+written, kind, "the CRD "+crd.Name)
	fmt.Fprintf(&b, "`%s/%s`, kind `%s`. %s\n", crd.Spec.Group, crd.Spec.Versions[0].Name, kind, cell(schema.Description))
	for _, part := range []string{"spec", "status"} {
		properties, found := schema.Properties[part]
		if !found {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| Field | Type | Means |\n|---|---|---|\n", part)
		rows(&b, part, properties)
	}
	return strings.ToLower(kind) + ".md", b.String(), nil
}

// foreign is the field that has the fields of Pods.
const foreign = "spec.registryV1.deploymentConfig"

// rows writes a row for each field below one, in order of the alphabet.
func rows(b *strings.Builder, path string, schema apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		at := path + "." + name
		needed := ""
		if slices.Contains(schema.Required, name) {
			needed = " Required."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s%s |\n", at, typeOf(field), cell(field.Description), needed)
		if path != foreign { // what is below is Kubernetes' own, which kubectl explain tells
			rows(b, at, element(field))
		}
	}
}

// element is what holds the fields below a field: itself, or what its list or map holds.
func element(field apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	switch {
	case field.Items != nil && field.Items.Schema != nil:
		return *field.Items.Schema
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return *field.AdditionalProperties.Schema
	}
	return field
}

// typeOf is the type of a field, with what bounds its values.
func typeOf(field apiextensionsv1.JSONSchemaProps) string {
	words := []string{field.Type}
	switch {
	case field.XIntOrString:
		words[0] = "integer or string"
	case field.Items != nil && field.Items.Schema != nil:
		words[0] = "list of " + field.Items.Schema.Type
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		words[0] = "map of " + field.AdditionalProperties.Schema.Type
	case field.Type == "":
		words[0] = "any"
	}
	if len(field.Enum) > 0 {
		var values []string
		for _, value := range field.Enum {
			values = append(values, code(value.Raw))
		}
		words = append(words, "one of "+strings.Join(values, " "))
	}
	if field.Default != nil {
		words = append(words, "default "+code(field.Default.Raw))
	}
	bounds := []struct {
		name  string
		value *int64
	}{
		{"at least %d characters", field.MinLength}, {"at most %d characters", field.MaxLength},
		{"at least %d entries", field.MinItems}, {"at most %d entries", field.MaxItems},
	}
	for _, bound := range bounds {
		if bound.value != nil {
			words = append(words, fmt.Sprintf(bound.name, *bound.value))
		}
	}
	return strings.Join(words, "; ")
}

// code is a JSON value as people write it.
func code(raw []byte) string {
	text := string(raw)
	if unquoted, err := strconv.Unquote(text); err == nil && unquoted != "" {
		text = unquoted
	}
	return "`" + text + "`"
}

// cell is a text in one line of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}

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
		fmt.Fprintf(&b, "\n## %s\n\n| Name | Means |\n|---|---|\n", strings.TrimSuffix(cell(group.Doc.Text()), "."))
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
