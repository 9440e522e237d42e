// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"testing"
)

// sizedTexts become larger in JSON than in YAML, or are aliases.
var sizedTexts = []string{
	"{a, b, c: ~}", "[y, n, ~, 1e20, 1e-6, -1.2345678901234567e-6, 0x7fffffffffffffff, -9223372036854775808]", "a: \"\\x01\\x02\\n\\t\\\"\"", "y: {n: {1: {2.5: []}}}",
	"a: &a {k: |\n  x\n\n  y\n}", "a: &a [\"\\x01\", \"\\x02\"]\nb: [*a, *a]\n*a : c", "a: &a [\"\\x01\", \"\\x02\"]\nb: [*a, *a, {<<: {z: *a}}]", "&k y: 1\nb: {*k : 2}",
	"kind: AList\napiVersion: \"\\x01\\x02\\x03\"\nitems: [{}, {a: b}]", "a: !!binary AQEBAQEB", "? 2024-01-01\n: 2024-01-01", "a: {}", "<<: [{a: \"\\x01\"}, {b: \"\\x02\"}]",
}

// TestSizesAreBounded: no estimate of the size of a value is smaller than its size, and JSONSize is what encoding/json needs.
func TestSizesAreBounded(t *testing.T) {
	for _, text := range sizedTexts {
		r := NewReader(nil, Limits{})
		for _, d := range r.decode(file{name: "f.yaml", data: []byte(text)}) {
			written, err := json.Marshal(d.value)
			if err != nil {
				t.Fatal(err)
			}
			size := int64(len(written))
			if got := JSONSize(d.value); got != size {
				t.Errorf("%q is %d bytes, not %d: %s", text, size, got, written)
			}
			if d.most < size {
				t.Errorf("%q is %d bytes, and was expected to have %d at most", text, size, d.most)
			}
			if fits(d.value, size-1) {
				t.Errorf("%q is %d bytes, and is said to fit into one less", text, size)
			}
			if !fits(d.value, d.most) {
				t.Errorf("%q is said not to fit into %d bytes, which it was expected to have at most", text, d.most)
			}
		}
		if len(r.problems) > 0 && r.problems[0].Rule != RuleSyntax {
			t.Error(r.problems)
		}
	}
}
