// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// aliasedValueCost is charged for each value that an alias repeats, so that the repetition of small ones is bounded as well.
const aliasedValueCost = 16

// builder turns a YAML node into the values that JSON knows. Aliases are expanded within a budget of bytes; an alias
// inside its own anchor ends at the depth limit.
type builder struct {
	names       interned
	maxDepth    int
	aliasBudget *int // of the whole bundle
	values      *budget
	repeats     *repeats
	within      within
	aliases     int   // how many aliases are being expanded around the present node
	most        int64 // no object that was built is larger as JSON
}

func (b *builder) value(n *yaml.Node, depth int) (any, error) {
	if b.aliases > 0 {
		if *b.aliasBudget -= len(n.Value) + aliasedValueCost; *b.aliasBudget < 0 {
			return nil, &fault{rule: RuleLimit, line: n.Line, message: "the aliases of the bundle expand to too much", remedy: "write the values out"}
		}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return b.value(n.Content[0], depth)
	case yaml.AliasNode:
		return b.alias(n, depth)
	}
	if err := b.values.charge(n.Line); err != nil {
		return nil, err
	}
	b.most += mostOf(len(n.Value))
	if n.Kind == yaml.ScalarNode {
		return scalar(n)
	}
	if depth++; depth > b.maxDepth {
		return nil, tooDeep(n.Line, b.maxDepth)
	}
	if n.Kind == yaml.MappingNode {
		return b.mapping(n, depth)
	}
	return b.sequence(n, depth)
}

// budget is how many values a bundle may still have.
type budget struct{ left, limit int }

// charge counts one value; the fault at the first that is too many ends the reading.
func (b *budget) charge(line int) error {
	if b.left--; b.left >= 0 {
		return nil
	}
	return &fault{rule: RuleLimit, line: line, final: true, remedy: "split the bundle, or raise --limit-manifest-values",
		message: fmt.Sprintf("the manifests up to here have more than %d values (mappings, lists, scalars) in all", b.limit)}
}

func tooDeep(line, limit int) error {
	return &fault{rule: RuleLimit, line: line, message: fmt.Sprintf("mappings and lists are nested more than %d levels deep", limit)}
}

func (b *builder) alias(n *yaml.Node, depth int) (any, error) {
	b.aliases++
	defer func() { b.aliases-- }()
	return b.value(n.Alias, depth)
}

func (b *builder) sequence(n *yaml.Node, depth int) (any, error) {
	if err := knownTag(n, "!!seq"); err != nil {
		return nil, err
	}
	around := b.within
	defer func() { b.within = around }()
	b.within = within{}
	out := make([]any, len(n.Content))
	for i, item := range n.Content {
		value, err := b.value(item, depth)
		if err != nil {
			return nil, err
		}
		out[i] = value
	}
	return out, nil
}

func (b *builder) mapping(n *yaml.Node, depth int) (any, error) {
	if err := knownTag(n, "!!map"); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			merges = append(merges, n.Content[i+1])
			continue
		}
		if err := b.entry(out, n, i, depth); err != nil {
			return nil, err
		}
	}
	for _, merge := range merges {
		if err := b.merge(out, merge, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// entry adds the key at position i of mapping n, and its value.
func (b *builder) entry(out map[string]any, n *yaml.Node, i, depth int) error {
	key, err := b.key(n.Content[i])
	if err != nil {
		return err
	}
	around := b.within
	b.within = within{outer: around.inner, inner: key}
	value, err := b.value(n.Content[i+1], depth)
	b.within = around
	if err != nil {
		return err
	}
	b.most += mostOf(len(key))
	before, double := out[key]
	if out[key] = value; !double {
		return nil
	}
	return b.repeats.add(key, same(before, value), b.within, func() (line, first int) { return n.Content[i].Line, b.lineOf(n, key) })
}

// lineOf is the line of the first key of that name in a mapping.
func (b *builder) lineOf(n *yaml.Node, wanted string) int {
	for i := 0; i < len(n.Content); i += 2 {
		if key, err := b.key(n.Content[i]); err == nil && key == wanted {
			return n.Content[i].Line
		}
	}
	return n.Line
}

// merge adds the keys of a merge key's value that are not there yet; of several mappings the first one wins.
func (b *builder) merge(out map[string]any, n *yaml.Node, depth int) error {
	value, err := b.value(n, depth)
	if err != nil {
		return err
	}
	sources, ok := value.([]any)
	if !ok {
		sources = []any{value}
	}
	for _, source := range sources {
		entries, ok := source.(map[string]any)
		if !ok {
			return &fault{rule: RuleSyntax, line: n.Line, message: "a merge key (<<) needs a mapping or a list of mappings"}
		}
		for key, value := range entries {
			if _, there := out[key]; !there {
				out[key] = value
			}
		}
	}
	return nil
}

// knownTag refuses tags that JSON has no counterpart for.
func knownTag(n *yaml.Node, want string) error {
	if n.Tag == want || n.Tag == "" || n.Tag == "!" {
		return nil
	}
	return &fault{rule: RuleSyntax, line: n.Line, message: "a YAML tag is not supported here", remedy: "remove the tag"}
}

// longestQuoted is how much of a key a message shows.
const longestQuoted = 64

// shorten keeps long texts out of messages.
func shorten(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "..."
}

// interned keeps one copy of each short string: manifests repeat few keys very often.
type interned map[string]string

const (
	longestInterned = 48
	mostInterned    = 1 << 14
)

func (i interned) get(s string) string {
	if len(s) > longestInterned {
		return s
	}
	if known, ok := i[s]; ok {
		return known
	}
	if len(i) < mostInterned {
		i[s] = s
	}
	return s
}
