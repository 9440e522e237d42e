// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// tree copies a kustomization, and all that it names, into memory under names of its own.
type tree struct {
	files    fs.FS
	limits   manifest.Limits
	reader   *manifest.Reader
	memory   filesys.FileSystem
	problems []manifest.Problem

	names    map[string]string // of the bundle, by those in memory
	secrets  []string          // values that no message may quote
	folders  int
	parts    int
	objects  int
	rootFile string // name of the first kustomization's file
	stopped  bool
}

func newTree(files fs.FS, limits manifest.Limits) *tree {
	return &tree{files: files, limits: limits, reader: manifest.NewReader(files, limits), memory: filesys.MakeFsInMemory(), names: map[string]string{}}
}

// folder copies a folder with a kustomization, and returns its path in memory; "" when something is wrong. within are
// the folders that lead here.
func (t *tree) folder(name string, within []string) string {
	if t.stopped {
		return ""
	}
	if t.folders++; t.folders > mostFolders {
		t.stop(manifest.Problem{File: name, Rule: manifest.RuleLimit, Remedy: "name each base once, or flatten them",
			Message: fmt.Sprintf("the kustomization consists of more than %d, counting each as often as it is named", mostFolders)})
		return ""
	}
	file, found := t.kustomizationIn(name)
	if !found {
		return ""
	}
	if len(within) == 0 {
		t.rootFile = path.Base(file)
	}
	copied := fmt.Sprintf("/satchel-folder-%06d", t.folders)
	t.names[strings.TrimPrefix(copied, "/")] = name
	k := t.parse(file)
	if k == nil {
		return ""
	}
	c := &copier{tree: t, dir: name, file: file, within: append(slices.Clone(within), name)}
	c.copy(k)
	data, err := json.Marshal(k)
	if err != nil {
		t.report(manifest.Problem{File: file, Rule: RuleKustomize, Message: "the kustomization cannot be written anew"})
		return ""
	}
	t.write(path.Join(copied, FileNames[0]), data)
	return copied
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

// part writes a file of the bundle, or a piece of one, into memory, and returns how a kustomization names it there.
func (t *tree) part(of string, data []byte) string {
	t.parts++
	name := fmt.Sprintf("satchel-file-%06d.yaml", t.parts)
	t.names[name] = of
	t.write("/"+name, data)
	return "../" + name
}

func (t *tree) write(name string, data []byte) {
	if err := t.memory.WriteFile(name, data); err != nil {
		t.report(manifest.Problem{Rule: RuleKustomize, Message: "writing into memory fails: " + err.Error()})
	}
}

func (t *tree) report(p manifest.Problem) {
	if !t.stopped {
		t.problems = append(t.problems, p)
	}
}

// stop ends the reading of a kustomization that has no end.
func (t *tree) stop(p manifest.Problem) {
	t.report(p)
	t.stopped = true
}
