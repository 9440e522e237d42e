// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deepestList is how deep Lists may be nested; real manifests do not nest them.
const deepestList = 5

// collect appends the objects of a document to out.
func (r *Reader) collect(out []Manifest, file string, d document) []Manifest {
	return r.flatten(out, file, d, d.value, 0)
}

func (r *Reader) flatten(out []Manifest, file string, d document, value any, depth int) []Manifest {
	object, ok := value.(map[string]any)
	if !ok {
		r.report(Problem{File: file, Document: d.number, Rule: RuleIdentity,
			Message: "this is " + describeValue(value) + ", not an object", Remedy: "a manifest needs apiVersion, kind and metadata"})
		return out
	}
	items, isList := listItems(object)
	if !isList {
		if !r.countObject(file, d.number) {
			return out
		}
		m := Manifest{File: file, Document: d.number, Object: &unstructured.Unstructured{Object: object}}
		if d.most == 0 || d.most > r.limits.ObjectBytes {
			if problem := r.limits.TooLarge(m); problem != nil {
				r.report(*problem)
				return out
			}
		}
		return append(out, m)
	}
	if depth >= deepestList {
		r.report(Problem{File: file, Document: d.number, Rule: RuleLimit, Message: fmt.Sprintf("lists lie in lists more than %d levels deep", deepestList)})
		return out
	}
	for _, item := range items {
		if r.stopped {
			break
		}
		out = r.flatten(out, file, d, typedItem(object, item), depth+1)
	}
	return out
}

// listItems tells a List (or a typed list such as ConfigMapList) by its kind and its items.
func listItems(object map[string]any) ([]any, bool) {
	kind, _ := object["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	raw, there := object["items"]
	items, ok := raw.([]any)
	return items, ok || there && raw == nil
}

// typedItem gives an item of a typed list the kind and version that its list implies.
func typedItem(list map[string]any, item any) any {
	object, ok := item.(map[string]any)
	listKind, _ := list["kind"].(string)
	kind := strings.TrimSuffix(listKind, "List")
	if !ok || kind == "" || object["kind"] != nil {
		return item
	}
	object["kind"] = kind
	if object["apiVersion"] == nil {
		object["apiVersion"] = list["apiVersion"]
	}
	return object
}

func (r *Reader) countObject(file string, number int) bool {
	if r.objects++; r.objects <= r.limits.Objects {
		return true
	}
	r.stop(Problem{File: file, Document: number, Rule: RuleLimit, Remedy: "split the bundle",
		Message: fmt.Sprintf("the bundle has more than %d objects", r.limits.Objects)})
	return false
}

func describeValue(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "true or false"
	}
	return "a number"
}
