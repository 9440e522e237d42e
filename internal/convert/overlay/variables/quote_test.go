// SPDX-License-Identifier: Apache-2.0

package variables_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/overlay/variables"
)

// TestF26Quotes: variables in a custom resource, where no type is known. A value becomes a number or boolean only if it prints back
// unchanged, and never with the quotes of Flux around it.
func TestF26Quotes(t *testing.T) {
	for value, want := range map[string]any{
		"2": int64(2), "2.5": 2.5, "true": true, "false": false,
		"2.40": "2.40", "004": "004", "010": "010", "0x10": "0x10", "1e3": "1e3", "1_000": "1_000", "+1": "+1", "yes": "yes", "no": "no", "on": "on",
		"~": "~", ".inf": ".inf", "2026-11-27": "2026-11-27", "12:30": "12:30", "71111111117000000000": "71111111117000000000", "True": "True",
	} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Gizmo", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"bare": "${V}", "quoted": "${q}${V}${q}", "inside": "v${V}", "own": `"${V}"`, "json": "${json}"},
		}}
		faults := variables.New(map[string]string{"V": value, "q": `"`, "json": `"x"`}, nil, 1000).Replace(object)
		spec, _ := object.Object["spec"].(map[string]any)
		if len(faults) > 0 || spec["bare"] != want || spec["quoted"] != value || spec["inside"] != "v"+value || spec["own"] != `"`+value+`"` || spec["json"] != "x" {
			t.Errorf("%s: %v, %#v", value, faults, spec)
		}
	}
}
