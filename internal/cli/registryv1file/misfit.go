// SPDX-License-Identifier: Apache-2.0

package registryv1file

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"

	"github.com/satchel-dev/satchel/internal/cli/spelling"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/shape"
	"github.com/satchel-dev/satchel/internal/view"
)

// mostFaults are listed of one document.
const mostFaults = 20

// fault is something in a YAML document that does not fit its type.
type fault struct {
	line    int
	message string
}

// misfits finds the lines of what does not fit.
func misfits(document *goyaml.Node, found []shape.Misfit) []fault {
	faults := make([]fault, 0, len(found))
	for _, m := range found {
		faults = append(faults, fault{line: lineOf(document, m), message: m.String() + meant(m)})
	}
	return faults
}

// lineOf is the line of the key for an unknown field, else that of the value. Where YAML writes a key in another way than
// JSON, it is the line of what is around.
func lineOf(node *goyaml.Node, m shape.Misfit) int {
	line := node.Line
	for _, s := range m.Path {
		for node.Kind == goyaml.AliasNode {
			node = node.Alias
		}
		key, value := child(node, s)
		if value == nil {
			return line
		}
		node, line = value, value.Line
		if len(m.Fields) > 0 {
			line = key.Line
		}
	}
	return line
}

func child(node *goyaml.Node, s shape.Step) (key, value *goyaml.Node) {
	switch {
	case node.Kind == goyaml.SequenceNode && s.Index < len(node.Content):
		return node.Content[s.Index], node.Content[s.Index]
	case node.Kind == goyaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == s.Key {
				return node.Content[i], node.Content[i+1]
			}
		}
	}
	return nil, nil
}

// repeated finds the keys that a mapping has twice, which JSON does not show any more.
func repeated(node *goyaml.Node, path shape.Path) []fault {
	var faults []fault
	switch node.Kind {
	case goyaml.SequenceNode:
		for i, item := range node.Content {
			faults = append(faults, repeated(item, append(path, shape.Step{Index: i}))...)
		}
	case goyaml.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			below := append(path, shape.Step{Key: key.Value})
			if seen[key.Value] {
				faults = append(faults, fault{line: key.Line, message: below.String() + " is given twice"})
			}
			seen[key.Value] = true
			faults = append(faults, repeated(node.Content[i+1], below)...)
		}
	}
	return faults
}

// meant suggests a field with a similar name.
func meant(m shape.Misfit) string {
	if len(m.Fields) == 0 {
		return ""
	}
	given := strings.ToLower(m.Path[len(m.Path)-1].Key)
	near := spelling.Nearest(given, m.Fields)
	if spelling.Distance(given, strings.ToLower(near[0])) > 3 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", near[0])
}

// faultsError lists faults, in the order of their lines. If the file is a whole BundleDeployment, it says what is expected.
func faultsError(faults []fault, document *goyaml.Node) error {
	slices.SortStableFunc(faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var lines []string
	for _, f := range faults[:min(len(faults), mostFaults)] {
		lines = append(lines, view.Inline(fmt.Sprintf("line %d: %s", f.line, f.message)))
	}
	if more := len(faults) - mostFaults; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	if field(document, "spec") != nil || field(document, "registryV1") != nil {
		lines = append(lines, "give only what stands below spec.registryV1 of a BundleDeployment")
	}
	return fmt.Errorf("it does not fit spec.registryV1 of a BundleDeployment, %s:\n  - %s",
		view.Plural(len(faults), "problem"), strings.Join(lines, "\n  - "))
}
