// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// FuzzDecode: nothing panics or exceeds a limit, what is read can be written as JSON, and a single document that kubectl's
// decoder reads as well means the same to both.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"kind: A\nv: {a: [1, 2.5, yes, ~, 0x1f, 1e3, 2024-01-01]}", "{\"kind\": \"A\", \"n\": 1.0}", "---\n# c\n---\nkind: List\nitems: [{kind: B}]",
		"a: &a [1]\nb: *a", "a: &a [*a]", "x: {<<: {a: 1}, a: 2}", "a: |\n  text\nb: >-\n  folded", "? a\n: b", "a: !!binary aGk=", "a: 'it''s'",
		"a: \"\\u00e9\\n\"", "- a\n- b", "\ufeffkind: A", "a: 1\na: 2", "a: 0o14", "a: 1_0.5", "a: -0.0", "a: =", "a: <<", "1: {true: x, ~: y}", "08000000: a", "%YAML 1.1\n---\na: b",
	} {
		f.Add([]byte(seed))
	}
	limits := manifest.Limits{FileBytes: 1 << 16, TotalBytes: 1 << 16, Documents: 50, Objects: 50, Depth: 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		read, problems := read("f.yaml", string(data), limits)
		if len(read) > limits.Objects {
			t.Fatalf("%d objects", len(read))
		}
		for _, m := range read {
			encoded, err := json.Marshal(m.Object.DeepCopy().Object)
			if err != nil {
				t.Fatalf("cannot be written: %v", err)
			}
			if len(problems) == 0 && len(read) == 1 {
				sameAsKubectl(t, data, encoded)
			}
		}
	})
}

// differs are texts that kubectl reads otherwise on purpose or by design: it stops after the first document, lets merged keys
// win, obeys the tag "!", and takes Lists apart elsewhere.
var differs = []string{"---", "...", "<<", "!", "List"}

func sameAsKubectl(t *testing.T, data, encoded []byte) {
	t.Helper()
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for _, text := range differs {
		if bytes.Contains(data, []byte(text)) {
			return
		}
	}
	theirs, err := yaml.YAMLToJSON(data)
	if err != nil {
		return
	}
	var want, got any
	if json.Unmarshal(theirs, &want) != nil || json.Unmarshal(encoded, &got) != nil {
		return
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("kubectl reads %s\nwe read      %s", theirs, encoded)
	}
}
