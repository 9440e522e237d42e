// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"encoding/json"
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// PlainOf is an object as people write it: without a status, and without what is empty.
func PlainOf(object any) (map[string]any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing the manifests: %w", err)
	}
	var plain map[string]any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		return nil, fmt.Errorf("writing the manifests: %w", err)
	}
	delete(plain, "status")
	if metadata, ok := plain["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	if sources, ok := nested(plain, "spec", "sources"); ok {
		withoutRoot(sources)
	}
	if sources, ok := nested(plain, "spec", "source", "sources"); ok {
		withoutRoot(sources)
	}
	if plain["kind"] == v1alpha1.BundleDeploymentKind {
		if spec, ok := plain["spec"].(map[string]any); ok && isEmpty(spec["registryV1"]) {
			delete(spec, "registryV1")
		}
	}
	return plain, nil
}

// nested is a list below some fields.
func nested(object map[string]any, path ...string) ([]any, bool) {
	var at any = object
	for _, key := range path {
		fields, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		at = fields[key]
	}
	list, ok := at.([]any)
	return list, ok
}

// withoutRoot leaves the destination of a single source out, which is the root.
func withoutRoot(sources []any) {
	for _, source := range sources {
		if fields, ok := source.(map[string]any); ok && fields["destination"] == "" {
			delete(fields, "destination")
		}
	}
}

func isEmpty(value any) bool {
	fields, ok := value.(map[string]any)
	return ok && len(fields) == 0
}
