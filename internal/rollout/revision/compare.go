// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// IsIn tells whether a BundleDeployment has all that was rendered. It may have more.
func (c *Child) IsIn(live *v1alpha1.BundleDeployment) bool {
	for key, value := range c.Labels {
		if live.Labels[key] != value {
			return false
		}
	}
	for key, value := range c.Annotations {
		if live.Annotations[key] != value {
			return false
		}
	}
	return contains(plain(live.Spec), plain(c.Spec))
}

// plain is a spec as maps, lists and values.
func plain(spec v1alpha1.BundleDeploymentSpec) any {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil // a spec is always JSON
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil
	}
	return value
}

// contains tells whether a value has all fields of another. Lists have to be as long.
func contains(value, part any) bool {
	switch wanted := part.(type) {
	case map[string]any:
		has, isMap := value.(map[string]any)
		if !isMap {
			return false
		}
		for key, one := range wanted {
			if !contains(has[key], one) {
				return false
			}
		}
		return true
	case []any:
		has, isList := value.([]any)
		return isList && slices.EqualFunc(has, wanted, contains)
	}
	return value == part
}
