// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// place is a catalog of the command line.
type place struct {
	name     string
	path     string
	priority int32
}

// priorityOption separates the path of a catalog from its priority.
const priorityOption = ",priority="

// parsePlaces reads the values of --catalog.
func parsePlaces(values []string) ([]place, error) {
	if len(values) == 0 {
		return nil, errors.New("no catalog is given: use --catalog NAME=PATH")
	}
	var places []place
	for _, value := range values {
		p, err := parsePlace(value)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(places, func(other place) bool { return other.name == p.name }) {
			return nil, fmt.Errorf("--catalog: the name %q is given twice", p.name)
		}
		places = append(places, p)
	}
	return places, nil
}

func parsePlace(value string) (place, error) {
	const want = "NAME=PATH or NAME=PATH,priority=N"
	name, path, found := strings.Cut(value, "=")
	if !found || name == "" {
		return place{}, usage("catalog", value, want)
	}
	p := place{name: name, path: path}
	if at := strings.LastIndex(path, priorityOption); at >= 0 {
		priority, err := strconv.ParseInt(path[at+len(priorityOption):], 10, 32)
		if err != nil {
			return place{}, usage("catalog", value, want+", with a number of 32 bits")
		}
		p.path, p.priority = path[:at], int32(priority)
	}
	if p.path == "" {
		return place{}, usage("catalog", value, want)
	}
	return p, nil
}

// parseInstalled reads the value of --installed. What is no version is for the resolver to refuse.
func parseInstalled(value string) (*resolver.Installed, error) {
	bundle, version, found := strings.Cut(value, "@")
	if !found || bundle == "" {
		return nil, usage("installed", value, "BUNDLE@VERSION, such as argocd-operator.v0.10.0@0.10.0")
	}
	return &resolver.Installed{Bundle: bundle, Version: version}, nil
}

// loaded is what the catalogs say about a package.
type loaded struct {
	catalogs []resolver.Catalog
	packages []string // names of all packages of all catalogs
	problems []string // blobs that are left out
}

// load reads the package from all catalogs.
func load(places []place, name string) (loaded, error) {
	var all loaded
	for _, p := range places {
		contents, err := read(p.path, name)
		if err != nil {
			return loaded{}, fmt.Errorf("catalog %s at %s: %w", p.name, p.path, err)
		}
		all.catalogs = append(all.catalogs, resolver.Catalog{
			Name: p.name, Priority: p.priority, Package: contents.Package, Problem: contents.Problem,
		})
		all.packages = append(all.packages, contents.Packages...)
		for _, problem := range contents.Problems {
			all.problems = append(all.problems, fmt.Sprintf("catalog %s: %v", p.name, problem))
		}
	}
	slices.Sort(all.packages)
	all.packages = slices.Compact(all.packages)
	return all, nil
}

// read reads the package from a folder or a file.
func read(path, name string) (fbc.Contents, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fbc.Contents{}, kit.WithoutPath(err)
	}
	folder, root := path, "."
	if !info.IsDir() {
		folder, root = filepath.Dir(path), filepath.Base(path)
	}
	files := os.DirFS(folder)
	if !fs.ValidPath(root) {
		return fbc.Contents{}, errors.New("this is no name of a file")
	}
	return fbc.ReadPackage(files, root, name, fbc.DefaultLimits())
}
