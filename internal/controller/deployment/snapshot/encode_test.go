// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/convert"
)

// A snapshot is encoded as encoding/json encodes it, so that one that is stored already is not stored again.
func TestEncodeIsMarshal(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "<&>\u2028", "n": int64(7)}}}
	for name, s := range map[string]Snapshot{
		"nothing": {},
		"all": {
			Revision: "app@sha256:1", Target: "one", Objects: []*unstructured.Unstructured{object}, Certificates: []convert.Certificate{{}},
			Hooks: []plan.Hook{{Object: object}},
		},
	} {
		if s.Objects == nil {
			s.Objects = []*unstructured.Unstructured{}
		}
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.encode(); err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, want)
		}
	}
}
