// SPDX-License-Identifier: Apache-2.0

// Package plain reads plain+v0 bundles: folders of Kubernetes manifests that are applied as they are.
package plain

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// folder is where a bundle image keeps its manifests.
const folder = "manifests"

// Bundle is what a plain+v0 tree holds.
type Bundle struct {
	// Manifests in the order of their files' names, then of their documents.
	Manifests []manifest.Manifest
	// Warnings about what was left out, sorted.
	Warnings []string
}

// Parse reads all manifests of manifests/, or of the whole tree where there is no such folder, at any depth. Folders and
// files with a name that begins with a dot, and files that are not manifests by name, are left out with a warning.
func Parse(files fs.FS, limits manifest.Limits) (*Bundle, []manifest.Problem) {
	names, skipped, problems := list(files)
	reader := manifest.NewReader(files, limits)
	bundle := &Bundle{Manifests: reader.ReadAll(names)}
	if len(skipped) > 0 {
		bundle.Warnings = []string{manifest.Skipped(skipped)}
	}
	bundle.Warnings = append(bundle.Warnings, reader.Warnings()...)
	slices.Sort(bundle.Warnings)
	problems = append(problems, reader.Problems()...)
	problems = append(problems, manifest.Identities(bundle.Manifests)...)
	if len(problems) == 0 && len(bundle.Manifests) == 0 {
		problems = append(problems, manifest.Problem{Rule: manifest.RuleFile, Message: "no manifest was found",
			Remedy: "add .yaml, .yml or .json files, or point spec.path at the folder that holds them"})
	}
	return bundle, problems
}

// list returns the sorted names of manifests and of what is left out.
func list(files fs.FS) (names, skipped []string, problems []manifest.Problem) {
	root := "."
	if info, err := fs.Lstat(files, folder); err == nil && info.IsDir() {
		root = folder
	}
	err := fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
		hidden := name != root && strings.HasPrefix(path.Base(name), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			skipped = append(skipped, name+"/")
			return fs.SkipDir
		case entry.IsDir():
		case hidden || !manifest.Named(name):
			skipped = append(skipped, name)
		default:
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		problems = append(problems, *manifest.Unreadable(root, err))
	}
	slices.Sort(names)
	slices.Sort(skipped)
	return names, skipped, problems
}
