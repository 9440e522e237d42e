// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
)

// schemaWords describe which fields of a version are added, removed and changed.
func schemaWords(before, after any) []string {
	if changes, _ := fields.Values(before, after); len(changes) == 0 {
		return nil
	}
	was, will := walked(before), walked(after)
	if was.full() || will.full() {
		return []string{"changes its schema"}
	}
	var added, removed, changed []string
	for _, path := range slices.Sorted(maps.Keys(will.nodes)) {
		former, found := was.nodes[path]
		switch {
		case !found && was.has(will.parents[path]):
			added = append(added, path)
		case !found:
		case former.differs(will.nodes[path]):
			changed = append(changed, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(was.nodes)) {
		if _, found := will.nodes[path]; !found && will.has(was.parents[path]) {
			removed = append(removed, path)
		}
	}
	var words []string
	for _, part := range []struct {
		verb  string
		paths []string
	}{{"adds", added}, {"removes", removed}, {"changes", changed}} {
		if len(part.paths) > 0 {
			words = append(words, part.verb+" "+few(part.paths))
		}
	}
	if words == nil {
		return []string{"changes descriptions only"}
	}
	return words
}

func few(paths []string) string {
	const most = 5
	for i, path := range paths {
		if path == "" {
			paths[i] = "the resource itself"
		}
	}
	if len(paths) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
	}
	return strings.Join(paths, ", ")
}

// node is the schema of one field, without the schemas of the fields in it.
type node map[string]any

func (n node) differs(other node) bool { return len(differing(n, other)) > 0 }

// walk gathers the nodes of a schema by their paths.
type walk struct {
	nodes   map[string]node
	parents map[string]string // the path of the parent node
}

func walked(schema any) walk {
	w := walk{nodes: map[string]node{}, parents: map[string]string{}}
	w.node("", "", schema)
	return w
}

// mostNodes of one schema are compared.
const mostNodes = 100_000

func (w walk) full() bool { return len(w.nodes) > mostNodes }

func (w walk) has(path string) bool {
	_, found := w.nodes[path]
	return found
}

func (w walk) node(parent, path string, value any) {
	schema, ok := value.(map[string]any)
	if !ok || w.full() {
		return
	}
	own := node{}
	for name, value := range schema {
		switch name {
		case "description", "properties", "title", "example", "externalDocs":
		case "items", "additionalProperties":
			if _, nested := value.(map[string]any); !nested {
				own[name] = value
			}
		default:
			own[name] = value
		}
	}
	w.nodes[path], w.parents[path] = own, parent
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		w.node(path, path+"."+name, property)
	}
	w.node(path, path+"[]", schema["items"])
	w.node(path, path+"[*]", schema["additionalProperties"])
}
