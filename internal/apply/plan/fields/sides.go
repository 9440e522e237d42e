// SPDX-License-Identifier: Apache-2.0

package fields

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Other stands for a hidden value that differs from the one before.
const Other = "(hidden, another one)"

// Sides copies the compared parts of an object, before and after, for a textual diff:
// hidden values are Hidden, or after a change Other. A nil object gives nil.
func Sides(before, after *unstructured.Unstructured) (was, will map[string]any) {
	from, to := visible(before), visible(after)
	was, _ = shown(from).(map[string]any)
	will, _ = shown(marked(from, to)).(map[string]any)
	return was, will
}

// marked copies a value and replaces the secrets that differ from those before.
func marked(before, after any) any {
	switch after := after.(type) {
	case map[string]any:
		was, _ := before.(map[string]any)
		copied := make(map[string]any, len(after))
		for name, value := range after {
			copied[name] = marked(was[name], value)
		}
		return copied
	case []any:
		was, _ := before.([]any)
		copied := make([]any, 0, len(after))
		for i, item := range after {
			var former any
			if i < len(was) {
				former = was[i]
			}
			copied = append(copied, marked(former, item))
		}
		return copied
	case secret:
		if before != nil && before != after {
			return Other
		}
	}
	return after
}
