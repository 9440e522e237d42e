// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/registryv1/shape"
)

// Inner is embedded; both fields are written even when they are zero.
type Inner struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// TestEmbeddedStructs: fields of an embedded struct are those of the outer one. Behind a pointer, none of them is required.
func TestEmbeddedStructs(t *testing.T) {
	byValue := shape.Of[struct {
		Inner

		Own string `json:"own,omitempty"`
	}]()
	byPointer := shape.Of[struct {
		*Inner

		Own string `json:"own,omitempty"`
	}]()
	for name, c := range map[string]struct {
		reason string
		of     *shape.Shape
		value  map[string]any
		want   map[string]any
		faults []string
	}{
		"value":      {reason: "as decoded and encoded again", of: byValue, value: map[string]any{"own": "x"}, want: map[string]any{"own": "x", "name": "", "count": int64(0)}},
		"pointer":    {reason: "nothing is added", of: byPointer, value: map[string]any{"own": "x"}, want: map[string]any{"own": "x"}},
		"its fields": {reason: "they are known", of: byPointer, value: map[string]any{"name": "x", "count": int64(2)}, want: map[string]any{"name": "x", "count": int64(2)}},
		"wrong type": {reason: "it is named", of: byPointer, value: map[string]any{"name": int64(1)}, want: map[string]any{}, faults: []string{"name"}},
	} {
		t.Run(name, func(t *testing.T) {
			var faults []string
			for _, misfit := range shape.Fit(c.of, c.value) {
				faults = append(faults, misfit.Path.String())
			}
			if diff := cmp.Diff(c.faults, faults); diff != "" {
				t.Errorf("%s: faults %s", c.reason, diff)
			}
			if len(c.faults) == 0 {
				if diff := cmp.Diff(c.want, c.value); diff != "" {
					t.Errorf("%s: %s", c.reason, diff)
				}
			}
		})
	}
}
