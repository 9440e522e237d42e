// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

// The example is a stored file, without its compression.
func TestF56WhatIsStored(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop"}}}
	last := Snapshot{
		Revision: "v1", Target: "uid", Objects: []*unstructured.Unstructured{object},
		Certificates: []convert.Certificate{{Namespace: "shop", Secret: "web-cert"}}, Hooks: []plan.Hook{{}},
		Files: Files{Origins: []string{"app/a.yaml"}, LeftOut: []string{"b.yaml"}, Held: []Held{{
			Links: []int{0}, Objects: []inventory.ID{{Kind: "ConfigMap", Namespace: "shop", Name: "b"}},
		}}},
	}
	dir := t.TempDir()
	snapshots, err := lastapplied.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Save(snapshots, "uid", last); err != nil {
		t.Fatal(err)
	}
	begun, err := json.Marshal(kept{Target: "uid", Begun: []Begun{{Rendered: "abc", Object: object, Recorded: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.SaveAddition("uid", begun); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "uid.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	formats.Golden(t, format.Snapshot, append(expanded(t, stored), formats.Shape(Snapshot{}, kept{})...))
}

// expanded reads a file without the code that wrote it.
func expanded(t *testing.T, stored []byte) []byte {
	t.Helper()
	line, rest, _ := bytes.Cut(stored, []byte("\n"))
	reader, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	text := append(slices.Clone(line), '\n')
	for len(rest) > 0 {
		size := binary.BigEndian.Uint64(rest)
		sum, part := rest[8:8+sha256.Size], rest[8+sha256.Size:][:size]
		if found := sha256.Sum256(part); !bytes.Equal(found[:], sum) {
			t.Fatal("a part has another checksum than its SHA-256")
		}
		content, err := reader.DecodeAll(part, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, rest = append(append(text, content...), '\n'), rest[8+sha256.Size+len(part):]
	}
	return text
}
