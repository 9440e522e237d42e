// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"io/fs"
	"path"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// FileNames are the names that a kustomization may have.
var FileNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// RuleKustomize is the rule of problems that are of kustomize, as Problem.Rule.
const RuleKustomize = "kustomize"

// Limits beside those of the manifests.
const (
	// mostFolders is how many kustomizations one may consist of. One that is named twice is built twice, and so counts twice:
	// bases that name two bases each would otherwise double with each level.
	mostFolders = 500
	// mostObjects is how many objects may be read: the time to find which object names which grows with their square, and
	// one is built at a time.
	mostObjects = 2000
	// share of the limits on the manifests' size that counts here: the library keeps several copies, each some times as large.
	share = 4
)

// build holds the library's turn: it keeps schemas and limits in variables of the process.
var build sync.Mutex

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
	limits = within(limits.OrDefault())
	t := newTree(files, limits)
	root := t.folder(path.Clean(folder), nil)
	if problems := t.reader.Problems(); len(problems) > 0 || len(t.problems) > 0 {
		return Result{}, append(problems, t.problems...)
	}
	output, err := t.run(root)
	if err != nil {
		return Result{}, []manifest.Problem{t.failure(folder, err)}
	}
	made := manifest.NewReader(files, limits)
	name := path.Join(folder, t.rootFile)
	manifests := made.Objects(name, output)
	problems := append(made.Problems(), manifest.Identities(manifests)...)
	if len(problems) == 0 && len(manifests) == 0 {
		problems = append(problems, manifest.Problem{File: name, Rule: RuleKustomize, Message: "nothing comes out of the kustomization",
			Remedy: "name manifests under resources"})
	}
	return Result{Manifests: manifests}, problems
}

func within(limits manifest.Limits) manifest.Limits {
	limits.Values /= share
	limits.TotalBytes /= share
	limits.Objects = min(limits.Objects, mostObjects)
	return limits
}

// run has the library build what was written into memory, and returns the objects as YAML.
func (t *tree) run(root string) (output []byte, err error) {
	build.Lock()
	defer build.Unlock()
	// Without it, a patch of thirty copies of what it made before has thousands of millions of values.
	jsonpatch.AccumulatedCopySizeLimit = t.limits.TotalBytes
	defer func() {
		if r := recover(); r != nil { // the library's own mistakes must not end the process
			err = fmt.Errorf("kustomize broke off: %v", r)
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // there is nothing but what was written for it
	options.PluginConfig = types.DisabledPluginConfig()
	made, err := krusty.MakeKustomizer(options).Run(t.memory, root)
	if err != nil {
		return nil, err
	}
	return made.AsYaml()
}
