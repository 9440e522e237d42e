// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// schema is the schema of a field.
type schema = apiextensionsv1.JSONSchemaProps

// elsewhere are fields with a type that another page describes, by their path, with a link to it.
var elsewhere = map[string]map[string]string{
	"BundleDeployment": {"spec.source": "Its fields: [BundleSource](bundlesource.md#spec)."},
}

// conditions are those of Kubernetes, with the same fields in all kinds.
const conditions = "status.conditions"

// Fields is a page about all fields of a kind, from its CRD: a table of the fields of spec and of status, and a table for
// each of these that has fields itself. It has the type, the default, the limits and the rules of each field.
func Fields(definition []byte) (name, page string, err error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(definition, &crd); err != nil {
		return "", "", fmt.Errorf("reading the CRD: %w", err)
	}
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Schema == nil {
		return "", "", fmt.Errorf("%s has %d versions, and a page is about one", crd.Name, len(crd.Spec.Versions))
	}
	kind := crd.Spec.Names.Kind
	root := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	f := fieldsPage{links: elsewhere[kind]}
	fmt.Fprintf(&f.text, "# Fields of %s\n\n"+written, kind, "the CRD "+crd.Name)
	fmt.Fprintf(&f.text, "`%s/%s`, kind `%s`. %s\n", crd.Spec.Group, crd.Spec.Versions[0].Name, kind, cell(root.Description))
	fmt.Fprintf(&f.text, "\nThe API server refuses values outside of the limits. `kubectl explain %s.spec` prints the same descriptions.\n", crd.Spec.Names.Plural)
	f.rules("Rules of the object", root)
	for _, half := range []string{"spec", "status"} {
		if part, found := root.Properties[half]; found {
			f.half(half, part)
		}
	}
	return strings.ToLower(kind) + ".md", f.text.String(), nil
}

// fieldsPage is a page about the fields of a kind while it is written.
type fieldsPage struct {
	text  strings.Builder
	links map[string]string
}

// half writes spec or status: a table of its own fields, and a section for each of these that has fields.
func (f *fieldsPage) half(path string, part schema) {
	fmt.Fprintf(&f.text, "\n## %s\n\n", path)
	f.section(path, part, 3, func(field schema) bool { return len(element(field).Properties) > 0 })
}

// section writes the table and the rules of an object, and then the sections of the fields that deserve one. The table has
// the fields of all other objects below it.
func (f *fieldsPage) section(path string, part schema, level int, deserves func(schema) bool) {
	f.text.WriteString("| Field | Type | Default | Limits | Description |\n|---|---|---|---|---|\n")
	sections := f.rows(path, part, deserves)
	f.rules("Rules of `"+path+"`", part)
	f.rulesBelow(path, part, deserves)
	for _, s := range sections {
		fmt.Fprintf(&f.text, "\n%s %s\n\n", strings.Repeat("#", level), s.path)
		f.section(s.path, s.part, level+1, func(field schema) bool { return count(element(field)) >= large })
	}
}

// large is how many fields an object within a section has that gets a section of its own.
const large = 8

// count is how many fields are below an object.
func count(part schema) int {
	total := len(part.Properties)
	for _, field := range part.Properties {
		total += count(element(field))
	}
	return total
}

// object is one with a section of its own.
type object struct {
	path string
	part schema
}

// rows writes a row for each field below a path, in alphabetical order, each followed by the fields below it. It returns
// those that deserve a section, where their fields are.
func (f *fieldsPage) rows(path string, part schema, deserves func(schema) bool) []object {
	var sections []object
	for _, name := range slices.Sorted(maps.Keys(part.Properties)) {
		at := path + "." + name
		field := part.Properties[name]
		separate := !f.leaf(at) && deserves(field)
		f.row(at, field, slices.Contains(part.Required, name), separate)
		switch {
		case separate:
			sections = append(sections, object{at, element(field)})
		case !f.leaf(at):
			sections = append(sections, f.rows(at, element(field), deserves)...)
		}
	}
	return sections
}

// leaf tells that the fields below one are described elsewhere.
func (f *fieldsPage) leaf(path string) bool {
	return f.links[path] != "" || path == conditions
}

// row writes the row about a field. One that has a section of its own links to it.
func (f *fieldsPage) row(path string, field schema, required, linked bool) {
	name := "`" + path + "`"
	if linked {
		name = fmt.Sprintf("[`%s`](#%s)", path, strings.ToLower(strings.ReplaceAll(path, ".", "")))
	}
	value := ""
	switch {
	case field.Default != nil && string(field.Default.Raw) != "{}":
		value = code(field.Default.Raw)
	case required:
		value = "required"
	}
	description := cell(field.Description)
	if link := f.links[path]; link != "" {
		description += " " + link
	}
	fmt.Fprintf(&f.text, "| %s | %s | %s | %s | %s |\n", name, typeOf(field), value, cell(strings.Join(limits(field), "; ")), description)
}

// rulesBelow writes the rules of the objects in a table. Those of a single value are among its limits.
func (f *fieldsPage) rulesBelow(path string, part schema, deserves func(schema) bool) {
	for _, name := range slices.Sorted(maps.Keys(part.Properties)) {
		at := path + "." + name
		below := part.Properties[name]
		if !f.leaf(at) && !deserves(below) {
			f.rules("Rules of `"+at+"`", element(below))
			f.rulesBelow(at, element(below), deserves)
		}
	}
}

// rules writes the messages of the CEL rules of an object.
func (f *fieldsPage) rules(title string, object schema) {
	if len(object.Properties) == 0 || len(object.XValidations) == 0 {
		return
	}
	fmt.Fprintf(&f.text, "\n%s:\n\n", title)
	for _, message := range messages(object) {
		fmt.Fprintf(&f.text, "- %s\n", cell(message))
	}
}

// element is what holds the fields below a field: itself, or what its list or map holds.
func element(field schema) schema {
	switch {
	case field.Items != nil && field.Items.Schema != nil:
		return *field.Items.Schema
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return *field.AdditionalProperties.Schema
	}
	return field
}

func typeOf(field schema) string {
	switch {
	case field.XIntOrString:
		return "integer or string"
	case field.Items != nil && field.Items.Schema != nil:
		return "list of " + field.Items.Schema.Type
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return "map of " + field.AdditionalProperties.Schema.Type
	case field.Type == "":
		return "any"
	case field.Format == "date-time":
		return "time"
	}
	return field.Type
}

// limits are the values that the API server accepts in a field, and in each entry of a list or map of values. An object
// states its rules below the table.
func limits(field schema) []string {
	found := limitsOfValue(field)
	entry := element(field)
	isContainer := field.Items != nil || field.AdditionalProperties != nil
	if isContainer && len(entry.Properties) == 0 {
		for _, limit := range limitsOfValue(entry) {
			found = append(found, "each "+limit)
		}
	}
	return found
}

func limitsOfValue(field schema) []string {
	var found []string
	if len(field.Enum) > 0 {
		var values []string
		for _, value := range field.Enum {
			values = append(values, code(value.Raw))
		}
		found = append(found, "one of "+strings.Join(values, ", "))
	}
	if field.Pattern != "" {
		found = append(found, "matches `"+field.Pattern+"`")
	}
	if !isDuration(field) {
		found = append(found, between(field.MinLength, field.MaxLength, "characters")...)
	}
	found = append(found, between(field.MinItems, field.MaxItems, "entries")...)
	found = append(found, between(field.MinProperties, field.MaxProperties, "entries")...)
	found = append(found, between(whole(field.Minimum), whole(field.Maximum), "")...)
	if len(field.Properties) == 0 {
		found = append(found, messages(field)...)
	}
	return found
}

// isDuration tells durations, which have a rule: how long their text is says nothing to users.
func isDuration(field schema) bool {
	return slices.ContainsFunc(field.XValidations, func(r apiextensionsv1.ValidationRule) bool {
		return strings.Contains(r.Rule, "duration(self)")
	})
}

func whole(limit *float64) *int64 {
	if limit == nil {
		return nil
	}
	value := int64(*limit)
	return &value
}

// between states a lower and an upper limit, of which either may be missing.
func between(least, most *int64, unit string) []string {
	var text string
	switch {
	case least != nil && most != nil:
		text = fmt.Sprintf("%d to %d %s", *least, *most, unit)
	case least != nil:
		text = fmt.Sprintf("at least %d %s", *least, unit)
	case most != nil:
		text = fmt.Sprintf("at most %d %s", *most, unit)
	default:
		return nil
	}
	return []string{strings.TrimSpace(text)}
}

// messages are what the API server answers where a CEL rule is not met.
func messages(field schema) []string {
	var found []string
	for _, rule := range field.XValidations {
		message := rule.Message
		if message == "" {
			message = "`" + rule.Rule + "`"
		}
		found = append(found, message)
	}
	return found
}

// code is a JSON value as people write it.
func code(raw []byte) string {
	text := string(raw)
	if unquoted, err := strconv.Unquote(text); err == nil && unquoted != "" {
		text = unquoted
	}
	return "`" + text + "`"
}
