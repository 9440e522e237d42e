// SPDX-License-Identifier: Apache-2.0

package fields

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Other stands for a value that is not shown and is another one than before.
const Other = "(hidden, another one)"

// Sides copy what of an object is compared, before and after, for a comparison as text:
// what is not to be shown is Hidden, or after a change Other. A nil object gives nil.
func Sides(before, after *unstructured.Unstructured) (was, will map[string]any) {
	from, to := visible(before), visible(after)
	was, _ = shown(from).(map[string]any)
	will, _ = shown(marked(from, to)).(map[string]any)
	return was, will
}

// marked copies a value with those secrets replaced that are others than before.
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
