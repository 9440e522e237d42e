// SPDX-License-Identifier: Apache-2.0

package links

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/internal/visible"
)

// most bounds the links that are known by name.
const most = 1000

// Everything stands for more links than are known by name: any file may be one of them.
const Everything = "."

// record is that of a global PAX header which names, as a JSON array, files that were left out of an archive.
const record = "SATCHEL.leftout"

// Records are those of the header of an archive that lacks the named files; nil for none.
func Records(names []string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil //nolint:nilnil // there is no header then
	}
	list, err := json.Marshal(names)
	return map[string]string{record: string(list)}, err
}

// Recorded are the names in the records of a header. What is no list of names is ignored: it has no other effect.
func Recorded(records map[string]string) []string {
	var names []string
	if list := records[record]; list == "" || json.Unmarshal([]byte(list), &names) != nil {
		return nil
	}
	return names
}

// Of names what is missing from files that know it, as those of a tree or a folder do; nothing of others.
func Of(files fs.FS) []string {
	if lacking, knows := files.(interface{ LeftOut() []string }); knows {
		return lacking.LeftOut()
	}
	return nil
}

// Set are links that were met.
type Set map[string]bool

// Add adds a link. Of too many, it is known whether more look like files of a bundle.
func (s Set) Add(where string) {
	switch {
	case len(s) < most:
		s[where] = true
	case where == Everything || isMeaningful(where):
		s[Everything] = true
	}
}

// Names are those of the links for which there is no file, below a folder and relative to it, sorted. The last one is Everything where
// there were too many.
func (s Set) Names(folder string, exists func(where string) bool) []string {
	var names []string
	for where := range s {
		inside, below := strings.CutPrefix(where, folder+"/")
		if where != Everything && (below || folder == ".") && !exists(where) {
			names = append(names, inside)
		}
	}
	slices.Sort(names)
	if s[Everything] {
		names = append(names, Everything)
	}
	return names
}

// meaningful are the names of folders, and of files without the ending of a manifest, that a converter would read.
var meaningful = []string{"manifests", "templates", "charts", "crds", "metadata", ".helmignore", "files"}

// isMeaningful tells whether a converter might read a file or folder, by its name.
func isMeaningful(name string) bool {
	switch base := path.Base(name); strings.ToLower(path.Ext(base)) {
	case ".yaml", ".yml", ".json", ".tpl", ".tgz":
		return true
	default:
		return slices.Contains(meaningful, base)
	}
}

// Meaningful returns those of the names that look like manifests, files of charts or their folders, in the same order.
func Meaningful(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name != Everything && !isMeaningful(name) })
}

// mostWarnings is how many names Warnings tells.
const mostWarnings = 10

// Ends of warnings.
const (
	leftOut = " is a symbolic link, a hard link or a submodule, which is not followed, and is left out of the artifact: put the file itself in its place"
	more    = " more links are not followed, and are missing from the artifact"
)

// Warnings tell users about the names that look like files of a bundle.
func Warnings(names []string) []string {
	meaningful := Meaningful(names)
	var warnings []string
	for _, name := range meaningful[:min(len(meaningful), mostWarnings)] {
		if name != Everything {
			warnings = append(warnings, Quote(name)+leftOut)
		}
	}
	if further := len(meaningful) - mostWarnings; further > 0 {
		warnings = append(warnings, fmt.Sprint(further)+more)
	}
	return warnings
}

// Notes returns Warnings about files when they have been read.
func Notes(files fs.FS) func() []string {
	return func() []string { return Warnings(Of(files)) }
}

// IsWarning tells whether a warning is one of Warnings.
func IsWarning(warning string) bool {
	return strings.HasSuffix(warning, leftOut) || strings.HasSuffix(warning, more)
}

// longestName bounds a name in a message, in bytes.
const longestName = 200

// Quote shows the name of a link, which its author chose.
func Quote(name string) string {
	return visible.Escape(strconv.QuoteToGraphic(name[:min(len(name), longestName)]))
}
