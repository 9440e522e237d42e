// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/satchel-dev/satchel/internal/view"
)

// Bounds of the search for the bundle that was meant.
const (
	mostVisited  = 10_000 // folders
	deepestBelow = 3
	deepestAbove = 2
	mostNamed    = 3
)

// partOf begins the hint about a folder that is a part of a bundle.
const partOf = "this is only a part of what looks like a registry+v1 bundle; if that was meant, "

// Meant suggests another folder if the given one is not a bundle: the bundle that it is a part of, or, if it is useless, one
// below it. It is empty if there is no such folder.
func (b *Bundle) Meant(given string, useless bool) string {
	given = path.Clean(filepath.ToSlash(given))
	if !fs.ValidPath(given) || !isFolder(b.Files, given) {
		if isBundle(b.Files, ".") {
			return "what is there looks like a registry+v1 bundle itself; if that was meant, " + pathFlag(".")
		}
		given = "."
	}
	if above := b.above(given); above != "" || !useless {
		return above
	}
	return b.below(given)
}

// isBundle tells whether a folder looks like a registry+v1 bundle.
func isBundle(files fs.FS, dir string) bool {
	annotations, err := fs.Stat(files, path.Join(dir, "metadata/annotations.yaml"))
	if err != nil || !annotations.Mode().IsRegular() {
		return false
	}
	return isFolder(files, path.Join(dir, "manifests"))
}

func isFolder(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.IsDir()
}

// above finds the bundle that the given folder is a part of, such as its manifests/.
func (b *Bundle) above(given string) string {
	if isBundle(b.Files, given) {
		return ""
	}
	for range deepestAbove {
		if given == "." {
			break
		}
		if given = path.Dir(given); isBundle(b.Files, given) {
			return partOf + pathFlag(given)
		}
	}
	if b.dir == "" || given != "." {
		return ""
	}
	dir := filepath.Clean(b.dir)
	for range deepestAbove {
		dir = filepath.Join(dir, "..")
		if parent := os.DirFS(dir); isBundle(parent, ".") {
			return partOf + "give the folder " + view.ShellWord(dir)
		}
	}
	return ""
}

func pathFlag(folder string) string {
	if folder == "." {
		return "leave --path out"
	}
	return "add --path " + view.ShellWord(folder)
}

// below finds the bundles in the given folder.
func (b *Bundle) below(given string) string {
	if isBundle(b.Files, given) {
		return ""
	}
	s := search{files: b.Files, left: mostVisited}
	s.look(given, 1)
	switch len(s.found) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("the folder %s in it looks like a registry+v1 bundle; if that was meant, %s", view.ShellWord(s.found[0]), pathFlag(s.found[0]))
	}
	named := make([]string, 0, mostNamed)
	for _, folder := range s.found[:min(len(s.found), mostNamed)] {
		named = append(named, view.ShellWord(folder))
	}
	list := strings.Join(named, ", ")
	if more := len(s.found) - len(named); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("there are registry+v1 bundles in it: %s; if one of them was meant, name it: %s", list, pathFlag(s.found[0]))
}

// search looks for bundles, not inside of bundles.
type search struct {
	files fs.FS
	left  int
	found []string
}

func (s *search) look(dir string, depth int) {
	entries, _ := fs.ReadDir(s.files, dir) // what cannot be read is not found
	for _, entry := range entries {
		if s.left--; s.left < 0 {
			return
		}
		name := path.Join(dir, entry.Name())
		switch {
		case !entry.IsDir():
		case isBundle(s.files, name):
			s.found = append(s.found, name)
		case depth < deepestBelow:
			s.look(name, depth+1)
		}
	}
}
