// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// FileNames are the names that a kustomization may have.
var FileNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// RuleKustomize is the rule of problems that are of kustomize, as Problem.Rule.
const RuleKustomize = "kustomize"

// Result is what a kustomization becomes.
type Result struct {
	// Manifests in the order that the kustomization asks for.
	Manifests []manifest.Manifest
	// Warnings about what was left out; sorted.
	Warnings []string
}

// Convert builds the kustomization in a folder of files; what it is based on may be anywhere in files. It fails with the
// problems that were found.
func Convert(files fs.FS, folder string, limits manifest.Limits) (Result, []manifest.Problem) {
	limits = limits.OrDefault()
	folder = path.Clean(folder)
	t := newTree(files, limits)
	t.folder(folder)
	if problems := t.reader.Problems(); len(problems) > 0 || len(t.problems) > 0 {
		return Result{}, append(problems, t.problems...)
	}
	output, err := t.run(folder)
	if err != nil {
		return Result{}, []manifest.Problem{t.failure(err)}
	}
	made := manifest.NewReader(files, limits)
	manifests := made.Objects(t.rootFile, output)
	problems := append(made.Problems(), manifest.Identities(manifests)...)
	if len(problems) == 0 && len(manifests) == 0 {
		problems = append(problems, manifest.Problem{File: t.rootFile, Rule: RuleKustomize, Message: "nothing comes out of the kustomization",
			Remedy: "name manifests under resources"})
	}
	return Result{Manifests: manifests}, problems
}

// run has the library build the files that were checked, and returns the objects as YAML.
func (t *tree) run(folder string) (output []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // the library's own mistakes must not end the process
			err = fmt.Errorf("kustomize broke off: %v", r)
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // there is nothing but what was checked
	options.PluginConfig = types.DisabledPluginConfig()
	made, err := krusty.MakeKustomizer(options).Run(&bundle{FileSystem: filesys.MakeFsInMemory(), files: t.files, checked: t.checked}, path.Join(root, folder))
	if err != nil {
		return nil, err
	}
	return made.AsYaml()
}
