// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/convert"
)

// What is stored, with all fields, by the version of the format. If this test fails, raise the version of the format in package
// lastapplied, and write the new number here: a controller of another version must not read the file as its own.
const (
	formatLine = "satchel snapshot 2\n"
	value      = `{"revision":"v1","target":"uid","objects":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}],` +
		`"certificates":[{"DNSNames":null,"Namespace":"shop","Secret":"web-cert"}],"hooks":[{"events":null,"object":null}]}`
	addition = `{"target":"uid","begun":[{"rendered":"abc","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}},"recorded":true}]}`
)

func TestF56WhatIsStored(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop"}}}
	last := Snapshot{
		Revision: "v1", Target: "uid", Objects: []*unstructured.Unstructured{object},
		Certificates: []convert.Certificate{{Namespace: "shop", Secret: "web-cert"}}, Hooks: []plan.Hook{{}},
	}
	encoded, err := last.encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded(t, value), decoded(t, string(encoded))); diff != "" {
		t.Errorf("the layout is another one, with the same version (-want +got):\n%s", diff)
	}
	begun, err := json.Marshal(kept{Target: "uid", Begun: []Begun{{Rendered: "abc", Object: object, Recorded: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded(t, addition), decoded(t, string(begun))); diff != "" {
		t.Errorf("the layout of the addition is another one, with the same version (-want +got):\n%s", diff)
	}
	dir := t.TempDir()
	snapshots, err := lastapplied.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Save(snapshots, "uid", last); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "uid.snapshot"))
	if err != nil || !strings.HasPrefix(string(stored), formatLine) {
		t.Errorf("it begins with %.30q (%v), want %q", stored, err, formatLine)
	}
}

// decoded decodes a document.
func decoded(t *testing.T, document string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
