// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert/kustomize"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// FuzzKustomization builds hostile kustomizations twice: nothing panics, both builds are the same, and no message tells the
// folder that the library sees.
func FuzzKustomization(f *testing.F) {
	for _, section := range strings.Split(shop, "-- ")[1:] {
		name, content, _ := strings.Cut(section, " --\n")
		if strings.HasSuffix(name, "kustomization.yaml") {
			f.Add([]byte(content), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"), []byte("resources: [../one.yaml]\n"))
		}
	}
	f.Add([]byte("resources: [base, one.yaml]\npatches: [{path: one.yaml}]\nsecretGenerator: [{name: s, files: [one.yaml]}]\n"),
		[]byte("- {op: add, path: /data, value: {}}\n"), []byte("namePrefix: a-\n"))
	f.Fuzz(func(t *testing.T, root, file, base []byte) {
		files := fstest.MapFS{"kustomization.yaml": {Data: root}, "one.yaml": {Data: file}, "base/kustomization.yaml": {Data: base}}
		build := func() []byte {
			made, problems := kustomize.Convert(files, ".", manifest.Limits{Values: 40_000, TotalBytes: 1 << 18, Depth: 40, Objects: 100})
			for _, p := range problems {
				if strings.Contains(p.String(), "satchel-bundle") {
					t.Fatalf("names the folder of the library: %s", p)
				}
			}
			text, err := json.Marshal(struct {
				Made     any
				Problems any
			}{made, problems})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		if first, second := build(), build(); !bytes.Equal(first, second) {
			t.Fatalf("two builds differ:\n%s\n%s", first, second)
		}
	})
}
