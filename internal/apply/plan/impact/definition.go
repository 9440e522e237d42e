// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
)

// What happens to a CRD.
type What string

const (
	// Added: it is new.
	Added What = "Added"
	// Changed: it differs.
	Changed What = "Changed"
	// Removed: it is not among the objects any more. That alone does not delete it.
	Removed What = "Removed"
)

// Definition is a CRD that is added, changed or removed.
type Definition struct {
	Name string // of the CRD
	What What
	// Words describe the changes, as "v1: adds .spec.size". Bounded.
	Words []string
}

// String describes the change: "widgets.example.org changes: v1: adds .spec.size".
func (d Definition) String() string {
	verb := map[What]string{Added: "is new", Changed: "changes", Removed: "is not part of it any more"}[d.What]
	if len(d.Words) == 0 {
		return d.Name + " " + verb
	}
	return fmt.Sprintf("%s %s: %s", d.Name, verb, strings.Join(d.Words, "; "))
}

func definitionChanges(was, will objects) []Definition {
	var list []Definition
	for _, id := range ids(was, will) {
		if !crds.IsCRD(id) {
			continue
		}
		definition := Definition{Name: id.Name, What: Changed}
		switch {
		case was[id] == nil:
			definition.What, definition.Words = Added, brings(will[id])
		case will[id] == nil:
			definition.What = Removed
		default:
			before, after := specOf(was[id]), specOf(will[id])
			if changes, _ := fields.Values(before, after); len(changes) == 0 {
				continue
			}
			definition.Words = wordsOn(before, after)
		}
		list = append(list, definition)
	}
	return list
}

// brings describes the kind that a CRD defines.
func brings(crd *unstructured.Unstructured) []string {
	spec := specOf(crd)
	kind, _, _ := unstructured.NestedString(spec, "names", "kind")
	scope, _ := spec["scope"].(string)
	var names []string
	for _, version := range versionsOf(spec) {
		names = append(names, version.name)
	}
	return []string{shorten(fmt.Sprintf("kind %s, %s, %s", kind, strings.ToLower(scope), strings.Join(names, ", ")))}
}

// specOf is the spec of a CRD without the CA bundle of its webhook, which a
// renewal of certificates changes.
func specOf(crd *unstructured.Unstructured) map[string]any {
	spec, _ := crd.Object["spec"].(map[string]any)
	config, found, _ := unstructured.NestedFieldNoCopy(spec, "conversion", "webhook", "clientConfig")
	client, ok := config.(map[string]any)
	if !found || !ok || client["caBundle"] == nil {
		return spec
	}
	without := func(of map[string]any, name string, value any) map[string]any {
		copied := maps.Clone(of)
		if delete(copied, name); value != nil {
			copied[name] = value
		}
		return copied
	}
	conversion, _ := spec["conversion"].(map[string]any)
	webhook, _ := conversion["webhook"].(map[string]any)
	webhook = without(webhook, "clientConfig", without(client, "caBundle", nil))
	return without(spec, "conversion", without(conversion, "webhook", webhook))
}

// version of a CRD.
type version struct {
	name            string
	served, storage bool
	schema          any
	rest            map[string]any
}

func versionsOf(spec map[string]any) []version {
	var list []version
	for _, item := range items(spec, "versions") {
		raw, _ := item.(map[string]any)
		v := version{rest: map[string]any{}}
		v.name, _ = raw["name"].(string)
		v.served, _ = raw["served"].(bool)
		v.storage, _ = raw["storage"].(bool)
		schema, _ := raw["schema"].(map[string]any)
		v.schema = schema["openAPIV3Schema"]
		for name, value := range raw {
			if name != "name" && name != "served" && name != "storage" && name != "schema" {
				v.rest[name] = value
			}
		}
		list = append(list, v)
	}
	return list
}

// mostWords is the maximum number of changes that are named for one CRD.
const mostWords = 30

// wordsOn describes how a spec changes.
func wordsOn(before, after map[string]any) []string {
	was, words := map[string]version{}, []string(nil)
	for _, v := range versionsOf(before) {
		was[v.name] = v
	}
	for _, v := range versionsOf(after) {
		former, found := was[v.name]
		delete(was, v.name)
		if !found {
			words = append(words, "adds version "+v.name)
			continue
		}
		words = append(words, former.becomes(v)...)
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		words = append(words, "removes version "+name)
	}
	for _, name := range differing(before, after) {
		if name != "versions" {
			words = append(words, "changes "+name)
		}
	}
	if len(words) > mostWords {
		words = append(words[:mostWords], fmt.Sprintf("and %d more changes", len(words)-mostWords))
	}
	for i, word := range words {
		words[i] = shorten(word)
	}
	return words
}

// becomes describes how a version changes.
func (v version) becomes(next version) []string {
	var words []string
	say := func(format string, args ...any) { words = append(words, v.name+" "+fmt.Sprintf(format, args...)) }
	if v.served != next.served {
		say("is %s", map[bool]string{true: "served", false: "no longer served"}[next.served])
	}
	if v.storage != next.storage {
		say("is %s", map[bool]string{true: "stored", false: "no longer stored"}[next.storage])
	}
	for _, text := range schemaWords(v.schema, next.schema) {
		words = append(words, v.name+": "+text)
	}
	if names := differing(v.rest, next.rest); len(names) > 0 {
		words = append(words, v.name+": changes "+strings.Join(names, ", "))
	}
	return words
}

// differing are the names of the fields that differ, sorted.
func differing(before, after map[string]any) []string {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		changes, _ := fields.Values(before[name], after[name])
		return len(changes) == 0
	})
}

// shorten bounds the length of a string.
func shorten(text string) string {
	const most = 500
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
