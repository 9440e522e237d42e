// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// tree checks a kustomization and all that it names, each file once.
type tree struct {
	files    fs.FS
	reader   *manifest.Reader
	problems []manifest.Problem

	checked  map[string][]byte // see bundle
	folders  map[string]bool   // that were entered
	secrets  []string          // values that no message may quote
	rootFile string            // the file of the first kustomization
}

// newTree reads strictly: the library refuses repeated keys by itself, whatever their values are.
func newTree(files fs.FS, limits manifest.Limits) *tree {
	return &tree{files: files, reader: manifest.NewReader(files, limits).Strict(), checked: map[string][]byte{}, folders: map[string]bool{}}
}

// first tells whether a file is named for the first time. The library may read it from then on.
func (t *tree) first(name string) bool {
	if _, known := t.checked[name]; known {
		return false
	}
	t.checked[name] = nil
	return true
}

// folder checks a folder with a kustomization.
func (t *tree) folder(name string) {
	if t.folders[name] {
		return
	}
	t.folders[name] = true
	file, found := t.kustomizationIn(name)
	if !found {
		return
	}
	if t.rootFile == "" {
		t.rootFile = file
	}
	k := t.parse(file)
	if k == nil {
		return
	}
	c := &check{tree: t, dir: name, file: file}
	c.names(k)
	content, err := json.Marshal(k)
	if err != nil {
		t.report(manifest.Problem{File: file, Rule: RuleKustomize, Message: "the kustomization cannot be written as JSON"})
		return
	}
	t.checked[file] = content
}

// kustomizationIn finds the one file of a kustomization in a folder.
func (t *tree) kustomizationIn(dir string) (string, bool) {
	var found []string
	for _, name := range FileNames {
		if _, err := fs.Lstat(t.files, path.Join(dir, name)); err == nil {
			found = append(found, path.Join(dir, name))
		}
	}
	switch len(found) {
	case 0:
		t.report(manifest.Problem{File: dir, Rule: RuleKustomize, Message: "the folder has no kustomization.yaml", Remedy: "add one, or name the files themselves"})
		return "", false
	case 1:
		return found[0], true
	}
	t.report(manifest.Problem{File: dir, Rule: RuleKustomize, Message: "the folder has " + strings.Join(bases(found), " and "), Remedy: "keep one of them"})
	return "", false
}

func bases(names []string) []string {
	short := make([]string, 0, len(names))
	for _, name := range names {
		short = append(short, path.Base(name))
	}
	return short
}

// parse reads a kustomization; unknown fields are refused.
func (t *tree) parse(file string) *types.Kustomization {
	values, ok := t.reader.Values(file)
	if !ok {
		return nil
	}
	fail := func(message, remedy string) *types.Kustomization {
		t.report(manifest.Problem{File: file, Rule: RuleKustomize, Message: message, Remedy: remedy})
		return nil
	}
	if len(values) != 1 {
		return fail(fmt.Sprintf("the file holds %d documents instead of one kustomization", len(values)), "")
	}
	data, err := json.Marshal(values[0])
	if err != nil {
		return fail("the kustomization cannot be read", "")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var k types.Kustomization
	if err := decoder.Decode(&k); err != nil {
		return fail("the kustomization is not valid: "+jsonFault(err), "see the fields of kustomize.config.k8s.io/v1beta1")
	}
	k.FixKustomization()
	if wrong := k.EnforceFields(); len(wrong) > 0 {
		return fail(strings.Join(wrong, ", "), "")
	}
	return &k
}

func (t *tree) report(p manifest.Problem) { t.problems = append(t.problems, p) }
