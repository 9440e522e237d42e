// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"maps"
	"slices"

	"github.com/satchel-dev/satchel/internal/convert/kustomize"
)

// mergeInto applies a strategic merge patch to an object. What the object is stays as it is, as in kustomize: a patch with a
// target bears whatever kind and name its author gave it.
func mergeInto(e *entry, patch map[string]any) (map[string]any, *fault) {
	if at := unfit(e.Object.Object, patch, ""); at != "" {
		return nil, &fault{
			fmt.Sprintf("the patch has a mapping, a list or a single value at %s, and the object another of the three", at),
			"write there what the object has, or a JSON 6902 patch",
		}
	}
	was := identityOf(e.Object.Object)
	merged, err := kustomize.Merge(e.Object.Object, patch)
	if err != nil {
		return nil, &fault{"the patch does not fit the object: " + err.Error(), "correct the patch"}
	}
	if merged == nil {
		return nil, nil
	}
	keepIdentity(merged, was)
	return merged, nil
}

// unfit returns where a patch has another sort of value than the object. Lists are left to the library, which knows which
// of their items belong together.
func unfit(object, patch any, at string) string {
	if object == nil || patch == nil {
		return ""
	}
	entries, isMap := patch.(map[string]any)
	_, isList := patch.([]any)
	have, hasMap := object.(map[string]any)
	_, hasList := object.([]any)
	if isMap != hasMap || isList != hasList {
		return at
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if where := unfit(have[key], entries[key], at+"."+key); where != "" {
			return where
		}
	}
	return ""
}

// identityOf is what says which object it is.
func identityOf(object map[string]any) map[string]any {
	identity, metadata := map[string]any{}, map[string]any{}
	keep(identity, object, "apiVersion")
	keep(identity, object, "kind")
	if has, ok := object["metadata"].(map[string]any); ok {
		keep(metadata, has, "name")
		keep(metadata, has, "namespace")
	}
	identity["metadata"] = metadata
	return identity
}

// keepIdentity gives a patched object the kind, name and namespace that it had.
func keepIdentity(merged, identity map[string]any) {
	keep(merged, identity, "apiVersion")
	keep(merged, identity, "kind")
	was, _ := identity["metadata"].(map[string]any)
	metadata, ok := merged["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		merged["metadata"] = metadata
	}
	keep(metadata, was, "name")
	keep(metadata, was, "namespace")
}

func keep(into, from map[string]any, key string) {
	if value, there := from[key]; there {
		into[key] = value
		return
	}
	delete(into, key)
}
