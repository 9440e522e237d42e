// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/kustomize"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// candidate is a folder below the one that a bundle is looked for in, with the format that a file in it shows.
type candidate struct {
	folder string
	format Format
}

// mostCandidates is how many candidates a message names.
const mostCandidates = 5

// contents is what a folder without a mark at its root holds.
type contents struct {
	manifests  bool
	candidates []candidate // by depth and name, none of them inside another one
}

// look goes through what plain+v0 would be read from.
func (d *detector) look() contents {
	var found contents
	root := "."
	if info, err := fs.Stat(d.files, manifestsFolder); err == nil && info.IsDir() {
		root = manifestsFolder
	}
	err := fs.WalkDir(d.files, root, func(name string, entry fs.DirEntry, err error) error {
		hidden := name != root && strings.HasPrefix(path.Base(name), ".")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir():
			return nil
		}
		if folder, format := d.shows(name); format != "" {
			found.candidates = append(found.candidates, candidate{folder, format})
		}
		found.manifests = found.manifests || manifest.Named(name)
		return nil
	})
	d.read(root, err)
	found.candidates = outermost(found.candidates)
	return found
}

// shows returns the folder and the format that a file below the root is a mark of.
func (d *detector) shows(name string) (folder string, format Format) {
	folder = path.Dir(name)
	switch base := path.Base(name); {
	case folder == ".":
	case base == chart:
		return folder, Helm
	case slices.Contains(kustomize.FileNames, base) && d.isKustomization(name):
		return folder, Kustomize
	case strings.HasSuffix(name, "/"+annotationsFile):
		if bundle := strings.TrimSuffix(name, "/"+annotationsFile); d.exists(path.Join(bundle, manifestsFolder)) {
			return bundle, RegistryV1
		}
	}
	return "", ""
}

// kustomization returns the name of the kustomization in the folder; "" for none.
func (d *detector) kustomization() string {
	for _, name := range kustomize.FileNames {
		if d.exists(name) && d.isKustomization(name) {
			return name
		}
	}
	return ""
}

// isKustomization tells kustomize's file from an object in a file of that name, such as a Kustomization of Flux.
func (d *detector) isKustomization(name string) bool {
	data, problem := manifest.NewReader(d.files, d.limits).ReadFile(name, kustomize.RuleKustomize)
	if problem != nil {
		if problem.Rule == manifest.RuleRead && d.failed == nil {
			d.failed = problem
		}
		return true
	}
	var content struct {
		APIVersion string `json:"apiVersion"`
	}
	err := yaml.Unmarshal(data, &content)
	return err != nil || content.APIVersion == "" || strings.HasPrefix(content.APIVersion, "kustomize.config.k8s.io/")
}

// outermost sorts candidates and drops those inside another one: the charts that a chart contains, the bases that lie in the
// folder of a kustomization.
func outermost(found []candidate) []candidate {
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(strings.Count(a.folder, "/"), strings.Count(b.folder, "/")), cmp.Compare(a.folder, b.folder), cmp.Compare(a.format, b.format))
	})
	kept := make([]candidate, 0, len(found))
	folders := map[string]bool{}
	for _, c := range found {
		above := path.Dir(c.folder)
		for above != "." && !folders[above] {
			above = path.Dir(above)
		}
		if above == "." {
			kept = append(kept, c)
			folders[c.folder] = true
		}
	}
	return kept
}

// refusal names the candidates and how to choose one of them. Satchel does not choose by itself: a second folder upstream
// would change what is installed, or end its updates.
func (d *detector) refusal(found contents) *Problem {
	names, folders := make([]string, 0, mostCandidates), make([]string, 0, mostCandidates)
	for _, c := range found.candidates {
		folder := path.Join(d.folder, c.folder)
		if quoted := fmt.Sprintf("%q", folder); !slices.Contains(folders, quoted) {
			folders = append(folders, quoted)
		}
		names = append(names, fmt.Sprintf("%s (%s)", folder, c.format))
	}
	more := ""
	if left := len(names) - mostCandidates; left > 0 {
		more = fmt.Sprintf(" and %d more", left)
		names = names[:mostCandidates]
	}
	folders = folders[:min(len(folders), mostCandidates)]
	p := &Problem{
		Rule:    "format",
		Message: "the bundle is not at the root of the files, and these folders hold one: " + strings.Join(names, ", ") + more,
		Remedy:  "set spec.path to one of " + strings.Join(folders, ", "),
	}
	if len(folders) == 1 {
		p.Message = fmt.Sprintf("the bundle is not at the root of the files, but in the folder %s", names[0])
		p.Remedy = "set spec.path to " + folders[0]
	}
	if d.folder != "." {
		p.Message = strings.Replace(p.Message, "at the root of the files", fmt.Sprintf("right in the folder %q of spec.path", d.folder), 1)
	}
	if found.manifests {
		p.Remedy += `, or spec.format to "plain+v0" to apply all manifests as they are`
	}
	return p
}
