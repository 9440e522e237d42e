// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"path"
	"slices"
	"strings"
)

// maxLeftOut bounds the links that are named.
const maxLeftOut = 10

// meaningful are the names of folders, and of files without the ending of a manifest, that a converter would read.
var meaningful = []string{"manifests", "templates", "charts", "crds", "metadata", ".helmignore"}

// isMeaningful tells whether a converter might read a file or folder, by its name.
func isMeaningful(name string) bool {
	switch base := path.Base(name); strings.ToLower(path.Ext(base)) {
	case ".yaml", ".yml", ".json", ".tpl", ".tgz":
		return true
	default:
		return slices.Contains(meaningful, base)
	}
}

// leaveOut keeps the name of a link for LeftOut.
func (f *folder) leaveOut(where string) {
	if isMeaningful(where) && len(f.links) < maxLeftOut && !slices.Contains(f.links, where) {
		f.links = append(f.links, where)
	}
}

// LeftOut names links that were skipped and that a converter would read: manifests, files of charts and their folders. They are
// at most ten, sorted; none has a file of the same name, as from another layer.
func (t *Tree) LeftOut() []string {
	links := slices.DeleteFunc(slices.Clone(t.links), func(where string) bool { return t.kinds[where] != absent })
	slices.Sort(links)
	return links
}
