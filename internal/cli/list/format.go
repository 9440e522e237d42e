// SPDX-License-Identifier: Apache-2.0

package list

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// Format is the value of -o: one of the words, or a template of kubectl.
type Format string

// words are the formats without a template.
var words = []printer.Output{printer.OutputTable, printer.OutputWide, printer.OutputName, printer.OutputJSON, printer.OutputYAML}

// The formats with a template begin with these.
const (
	jsonPath      = "jsonpath="
	customColumns = "custom-columns="
)

// formatWords are the beginnings of all formats.
func formatWords() []string {
	var all []string
	for _, word := range words {
		all = append(all, string(word))
	}
	return append(all, jsonPath, customColumns)
}

// Set implements pflag.Value: it accepts the formats, and templates that can be read.
func (f *Format) Set(value string) error {
	*f = Format(value)
	if slices.Contains(words, printer.Output(value)) {
		return nil
	}
	if !f.isTemplate() {
		return fmt.Errorf("%q is not one of: %s", value, strings.Join(formatWords(), ", "))
	}
	_, err := f.templatePrinter(false)
	return err
}

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (*Format) Type() string { return "string" }

func (f Format) isTable() bool {
	return f == Format(printer.OutputTable) || f == Format(printer.OutputWide)
}

func (f Format) isTemplate() bool {
	return strings.HasPrefix(string(f), jsonPath) || strings.HasPrefix(string(f), customColumns)
}

// templatePrinter is kubectl's printer of a template.
func (f Format) templatePrinter(noHeaders bool) (printers.ResourcePrinter, error) {
	if spec, found := strings.CutPrefix(string(f), customColumns); found {
		return kubectlget.NewCustomColumnsPrinterFromSpec(spec, unstructured.UnstructuredJSONScheme, noHeaders)
	}
	return new(genericclioptions.JSONPathPrintFlags).ToPrinter(string(f))
}

// print writes objects in a format that is no table.
func (f Format) print(out io.Writer, groups []kit.Group, single, noHeaders bool) error {
	switch {
	case f == Format(printer.OutputName):
		for _, g := range groups {
			for _, item := range g.Objects {
				fmt.Fprintln(out, qualifiedName(g.Kind, item.GetName()))
			}
		}
		return nil
	case f.isTemplate():
		return f.printTemplate(out, groups, single, noHeaders)
	}
	return printer.PrintValue(out, printer.Output(f), document(groups, single))
}

// qualifiedName is a name with its kind, as kubectl has it.
func qualifiedName(k kit.Kind, name string) string {
	return strings.ToLower(k.Name) + "." + v1alpha1.GroupVersion.Group + "/" + name
}

// printTemplate writes what a template makes of the objects. Characters that could steer a terminal are escaped.
func (f Format) printTemplate(out io.Writer, groups []kit.Group, single, noHeaders bool) error {
	templates, err := f.templatePrinter(noHeaders)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	content := document(groups, single)
	object := &unstructured.Unstructured{Object: content}
	if object.IsList() {
		list, err := object.ToList()
		if err != nil {
			return err
		}
		err = templates.PrintObj(list, &text)
		if err != nil {
			return fmt.Errorf("writing the output by the template of -o: %w", err)
		}
	} else if err := templates.PrintObj(object, &text); err != nil {
		return fmt.Errorf("writing the output by the template of -o: %w", err)
	}
	_, err = io.WriteString(out, view.Printable(text.String()))
	return err
}

// document is the object itself when one was named, else a List as kubectl has it.
func document(groups []kit.Group, single bool) map[string]any {
	items := []any{}
	for _, g := range groups {
		for _, item := range g.Raw {
			items = append(items, item.Object)
		}
	}
	if single && len(items) == 1 {
		if only, isMap := items[0].(map[string]any); isMap {
			return only
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
}
