// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
)

// errUnfit stands for what the library says of a patch, which quotes values.
var errUnfit = errors.New("a mapping, a list or a single value of the patch stands where the object has another of the three, or a $patch is none of delete, replace and merge")

// directive is the key by which a patch says what becomes of a mapping or an item.
const directive = "$patch"

// Merge applies a strategic merge patch to an object as kustomize does, and returns the object, changed; nil when the patch
// deletes it. Its errors quote no values. The library gets no more of the object than the patch is about: it would walk
// through all of it, with its schema, at a millisecond an object.
func Merge(object, patch map[string]any) (map[string]any, error) {
	if patch[directive] == "delete" {
		return nil, nil //nolint:nilnil // nothing is left of the object
	}
	part := concerned(object, patch)
	for _, key := range []string{"apiVersion", "kind"} { // by which the library finds the schema
		part[key] = object[key]
	}
	merged, err := mergeWhole(part, patch)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if _, there := patch[key]; !there {
			delete(merged, key)
		}
	}
	if patch[directive] == "replace" {
		return merged, nil
	}
	putBack(object, patch, merged)
	return object, nil
}

// concerned is the part of a mapping that a patch is about.
func concerned(object, patch map[string]any) map[string]any {
	part := map[string]any{}
	for key, change := range patch {
		have, there := object[key]
		if !there {
			continue
		}
		inner, ok := plainMapping(change)
		if within, both := have.(map[string]any); ok && both {
			have = concerned(within, inner)
		}
		part[key] = have
	}
	return part
}

// plainMapping is a mapping of a patch that is merged, field by field.
func plainMapping(change any) (map[string]any, bool) {
	inner, ok := change.(map[string]any)
	if value, directed := inner[directive]; directed && value != "merge" {
		return nil, false
	}
	return inner, ok
}

// putBack puts what came of the concerned part into the mapping that it was taken from.
func putBack(object, patch, merged map[string]any) {
	for key, change := range patch {
		if key == directive {
			continue
		}
		now, there := merged[key]
		inner, ok := plainMapping(change)
		within, both := object[key].(map[string]any)
		left, _ := now.(map[string]any)
		switch {
		case ok && both && (there || beyond(within, inner)):
			putBack(within, inner, left)
		case there:
			object[key] = now
		default:
			delete(object, key)
		}
	}
}

// beyond tells that a mapping has fields that a patch is not about.
func beyond(within, patch map[string]any) bool {
	for key := range within {
		if _, there := patch[key]; !there {
			return true
		}
	}
	return false
}

// mergeWhole has the library merge.
func mergeWhole(object, patch map[string]any) (merged map[string]any, err error) {
	defer func() {
		if r := recover(); r != nil { // the library's own mistakes must not end the process
			merged, err = nil, errUnfit
		}
	}()
	options := yaml.MergeOptions{ListIncreaseDirection: yaml.MergeOptionsListPrepend}
	node, err := merge2.Merge(yaml.NewRNode(nodeOf(patch)), yaml.NewRNode(nodeOf(object)), options)
	switch {
	case err != nil:
		return nil, errUnfit
	case node.IsNilOrEmpty():
		return map[string]any{}, nil
	}
	value, err := valueOf(node.YNode())
	if err != nil {
		return nil, err
	}
	merged, _ = value.(map[string]any) // what began as a mapping is one
	return merged, nil
}

// nodeOf is a value as the library knows values. Tags tell texts from what they look like.
func nodeOf(value any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text} }
	switch v := value.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			node.Content = append(node.Content, scalar(yaml.NodeTagString, key), nodeOf(v[key]))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode, Tag: yaml.NodeTagSeq}
		for _, item := range v {
			node.Content = append(node.Content, nodeOf(item))
		}
		return node
	case string:
		return scalar(yaml.NodeTagString, v)
	case bool:
		return scalar(yaml.NodeTagBool, strconv.FormatBool(v))
	case int64:
		return scalar(yaml.NodeTagInt, strconv.FormatInt(v, 10))
	case float64:
		return scalar(yaml.NodeTagFloat, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return scalar(yaml.NodeTagNull, "null")
}

// valueOf is the other way round.
func valueOf(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.DocumentNode:
		return valueOf(node.Content[0])
	case yaml.MappingNode:
		out := make(map[string]any, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			value, err := valueOf(node.Content[i+1])
			if err != nil {
				return nil, err
			}
			out[node.Content[i].Value] = value
		}
		return out, nil
	case yaml.SequenceNode:
		out := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			value, err := valueOf(item)
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		return out, nil
	case yaml.ScalarNode:
		return scalarOf(node)
	}
	return nil, errUnfit
}

func scalarOf(node *yaml.Node) (value any, err error) {
	switch node.ShortTag() {
	case yaml.NodeTagString:
		return node.Value, nil
	case yaml.NodeTagBool:
		value, err = strconv.ParseBool(node.Value)
	case yaml.NodeTagInt:
		value, err = strconv.ParseInt(node.Value, 10, 64)
	case yaml.NodeTagFloat:
		value, err = strconv.ParseFloat(node.Value, 64)
	case yaml.NodeTagNull:
		return nil, nil
	default:
		return nil, errUnfit
	}
	if err != nil {
		return nil, fmt.Errorf("a value of the type %s cannot be read back", node.ShortTag())
	}
	return value, nil
}
