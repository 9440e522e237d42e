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
	if plain["kind"] == v1alpha1.BundleDeploymentKind {
		if spec, ok := plain["spec"].(map[string]any); ok && isEmpty(spec["registryV1"]) {
			delete(spec, "registryV1")
		}
	}
	return plain, nil
}

func isEmpty(value any) bool {
	fields, ok := value.(map[string]any)
	return ok && len(fields) == 0
}
