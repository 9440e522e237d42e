// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
)

// BenchmarkJudge is about a CRD of the largest kind: half a megabyte, ten deep.
func BenchmarkJudge(b *testing.B) {
	was := crd(&testing.T{}, live, nil)
	will := was.DeepCopy()
	fields := map[string]any{}
	for i := range 400 {
		var field any = map[string]any{"type": "string", "description": strings.Repeat("words ", 50)}
		for range 10 {
			field = map[string]any{"type": "object", "properties": map[string]any{"next": field, "leaf": map[string]any{"type": "string"}}}
		}
		fields[fmt.Sprintf("field%d", i)] = field
	}
	for _, object := range []map[string]any{was.Object, will.Object} {
		versions := object["spec"].(map[string]any)["versions"].([]any)
		versions[1].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["big"] = map[string]any{"type": "object", "properties": fields}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := crdsafety.Judge(was, will); err != nil {
			b.Fatal(err)
		}
	}
}
