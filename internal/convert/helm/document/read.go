// SPDX-License-Identifier: Apache-2.0

// Package document reads documents of values for charts, within limits, and merges them.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// Limits of a document of values: a few bytes of YAML can expand to a lot of memory.
const (
	mostBytes  = 4 << 20
	mostValues = 100_000
	mostDepth  = 100
)

// lineOf finds the line number in a message of the parser; the rest of the message may quote the document.
var lineOf = regexp.MustCompile(`line (\d+)`)

// Read reads one document of values, in YAML or JSON, as Helm does: numbers are floating-point. An empty document has no
// values. The problem, "" if there is none, names the line but never quotes the document.
func Read(data []byte) (read map[string]any, problem string) { return NewBudget().Read(data) }

// Budget is how much several documents that are merged may expand together.
type Budget struct {
	budget
	documents int
}

// NewBudget returns the budget of one document, however many share it.
func NewBudget() *Budget { return &Budget{budget: budget{values: mostValues, bytes: mostBytes}} }

// Read is Read of one of the documents.
func (b *Budget) Read(data []byte) (read map[string]any, problem string) {
	b.documents++
	if len(data) > mostBytes {
		return nil, fmt.Sprintf("it has more than %d bytes", mostBytes)
	}
	if problem := b.bounded(data); problem != "" {
		return nil, problem
	}
	if err := yaml.Unmarshal(data, &read); err != nil {
		return nil, at(err) + "this is not valid YAML"
	}
	if read == nil {
		read = map[string]any{}
	}
	return read, ""
}

// bounded checks a document before it is expanded.
func (b *Budget) bounded(data []byte) string {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var node yamlv3.Node
	switch err := decoder.Decode(&node); {
	case errors.Is(err, io.EOF):
		return ""
	case err != nil:
		return at(err) + "this is not valid YAML"
	}
	if err := decoder.Decode(new(yamlv3.Node)); !errors.Is(err, io.EOF) {
		return "it has more than one document"
	}
	if problem := b.count(&node, 0); problem != "" {
		if b.documents > 1 {
			problem += ", together with the documents before it"
		}
		return problem
	}
	top := node.Content[0]
	if top.Kind == yamlv3.AliasNode {
		top = top.Alias
	}
	if top.Kind != yamlv3.MappingNode && top.Tag != "!!null" {
		return fmt.Sprintf("line %d: values are a mapping of names to values, and this is not one", top.Line)
	}
	return ""
}

// budget is how much a document may still expand.
type budget struct{ values, bytes int }

// count visits a node as often as aliases repeat it.
func (left *budget) count(node *yamlv3.Node, depth int) string {
	if left.values--; left.values < 0 {
		return fmt.Sprintf("line %d: it becomes more than %d values", node.Line, mostValues)
	}
	if node.Kind == yamlv3.ScalarNode {
		if left.bytes -= len(node.Value); left.bytes < 0 {
			return fmt.Sprintf("line %d: with its aliases it becomes more than %d bytes", node.Line, mostBytes)
		}
	}
	if depth > mostDepth {
		return fmt.Sprintf("line %d: mappings and lists are nested more than %d levels deep", node.Line, mostDepth)
	}
	if node.Kind == yamlv3.AliasNode {
		return left.count(node.Alias, depth+1)
	}
	for _, inner := range node.Content {
		if problem := left.count(inner, depth+1); problem != "" {
			return problem
		}
	}
	return ""
}

// at is the line in a message of the parser, as a prefix.
func at(err error) string {
	if match := lineOf.FindStringSubmatch(err.Error()); match != nil {
		return "line " + match[1] + ": "
	}
	return ""
}

// Over merges values over others: mappings are merged, everything else is replaced. Neither argument is changed.
func Over(below, above map[string]any) map[string]any {
	merged := maps.Clone(below)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, value := range above {
		if inner, ok := value.(map[string]any); ok {
			if under, ok := merged[name].(map[string]any); ok {
				value = Over(under, inner)
			}
		}
		merged[name] = value
	}
	return merged
}
