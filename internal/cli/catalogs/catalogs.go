// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/spelling"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// Place is a catalog of the command line.
type Place struct {
	Name     string
	Path     string
	Priority int32
}

// priorityOption separates the path of a catalog from its priority.
const priorityOption = ",priority="

// Parse reads the values of --catalog.
func Parse(values []string) ([]Place, error) {
	if len(values) == 0 {
		return nil, errors.New("no catalog is given: use --catalog NAME=PATH")
	}
	var places []Place
	for _, value := range values {
		p, err := parsePlace(value)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(places, func(other Place) bool { return other.Name == p.Name }) {
			return nil, fmt.Errorf("--catalog: the name %q is given twice", p.Name)
		}
		places = append(places, p)
	}
	return places, nil
}

func parsePlace(value string) (Place, error) {
	const want = "NAME=PATH or NAME=PATH,priority=N"
	name, path, found := strings.Cut(value, "=")
	if !found || name == "" {
		return Place{}, Usage("catalog", value, want)
	}
	p := Place{Name: name, Path: path}
	if at := strings.LastIndex(path, priorityOption); at >= 0 {
		priority, err := strconv.ParseInt(path[at+len(priorityOption):], 10, 32)
		if err != nil {
			return Place{}, Usage("catalog", value, want+", with a number of 32 bits")
		}
		p.Path, p.Priority = path[:at], int32(priority)
	}
	if p.Path == "" {
		return Place{}, Usage("catalog", value, want)
	}
	return p, nil
}

// Loaded is what the catalogs say about a package.
type Loaded struct {
	Catalogs []resolver.Catalog
	Packages []string // names of all packages of all catalogs
	Problems []string // blobs that are left out
}

// Load reads the package from all catalogs.
func Load(places []Place, name string) (Loaded, error) {
	var all Loaded
	for _, p := range places {
		contents, err := read(p.Path, name)
		if err != nil {
			return Loaded{}, fmt.Errorf("catalog %s at %s: %w", p.Name, p.Path, err)
		}
		all.Catalogs = append(all.Catalogs, resolver.Catalog{
			Name: p.Name, Priority: p.Priority, Package: contents.Package, Problem: contents.Problem,
		})
		all.Packages = append(all.Packages, contents.Packages...)
		for _, problem := range contents.Problems {
			all.Problems = append(all.Problems, fmt.Sprintf("catalog %s: %v", p.Name, problem))
		}
	}
	slices.Sort(all.Packages)
	all.Packages = slices.Compact(all.Packages)
	return all, nil
}

// read reads the package from a folder or a file.
func read(path, name string) (fbc.Contents, error) {
	files, root, err := Open(path)
	if err != nil {
		return fbc.Contents{}, err
	}
	return fbc.ReadPackage(files, root, name, fbc.DefaultLimits())
}

// Open returns the files of a catalog in a folder or a file, and the name of that folder or file in them.
func Open(path string) (files fs.FS, root string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", kit.WithoutPath(err)
	}
	folder, root := path, "."
	if !info.IsDir() {
		folder, root = filepath.Dir(path), filepath.Base(path)
	}
	if !fs.ValidPath(root) {
		return nil, "", errors.New("this is no name of a file")
	}
	return os.DirFS(folder), root, nil
}

// Similar are the names of packages that may have been meant, where no catalog has the package.
func (l Loaded) Similar(name string) []string {
	if slices.ContainsFunc(l.Catalogs, func(c resolver.Catalog) bool { return c.Package != nil || c.Problem != nil }) {
		return nil
	}
	if len(l.Packages) == 0 {
		return []string{"the catalogs have no packages"}
	}
	return []string{"similar packages: " + strings.Join(spelling.Nearest(name, l.Packages), ", ")}
}

// Flag adds the flag that Parse reads.
func Flag(cmd *cobra.Command, values *[]string) {
	cmd.Flags().StringArrayVar(values, "catalog", nil,
		"Catalog as NAME=PATH or NAME=PATH,priority=N, with a folder or a file; may be repeated. The highest priority wins; it is 0 if it is not given.")
}

// Usage is an error about a flag.
func Usage(flag, value, want string) error {
	return fmt.Errorf("--%s %q has to be %s", flag, value, want)
}
