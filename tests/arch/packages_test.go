// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the import path of the root.
const module = "github.com/satchel-dev/satchel"

// goPackage is what `go list -json` says about a package.
type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Standard   bool
	Error      *struct{ Err string }
}

// root returns the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatalf("finding the repository: %v", err)
	}
	return dir
}

// run runs a command in the repository and returns what it printed.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	return runIn(t, ".", name, args...)
}

// runIn runs a command in a folder of the repository.
func runIn(t *testing.T, folder, name string, args ...string) []byte {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = filepath.Join(root(t), folder)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return out
}

// modules are the folders of the modules of the product.
var modules = []string{".", "migrate"}

// listAll lists packages in all modules of the product.
func listAll(t *testing.T, pattern string) []goPackage {
	t.Helper()
	var packages []goPackage
	for _, folder := range modules {
		packages = append(packages, listIn(t, folder, pattern)...)
	}
	return packages
}

// list runs `go list -e -json` with further arguments.
func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	return listIn(t, ".", args...)
}

func listIn(t *testing.T, folder string, args ...string) []goPackage {
	t.Helper()
	out := runIn(t, folder, "go", append([]string{"list", "-e", "-json=ImportPath,Dir,GoFiles,Imports,Standard,Error"}, args...)...)
	var packages []goPackage
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("reading what go list printed: %v", err)
		}
		packages = append(packages, p)
	}
}

// relative is a folder of the repository, relative to its root.
func relative(t *testing.T, folder string) string {
	t.Helper()
	name, err := filepath.Rel(root(t), folder)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// matches tells whether an import path is one of the patterns, see importRule.
func matches(importPath string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if rest, ok := strings.CutPrefix(pattern, "./"); ok {
			pattern = module + "/" + rest
		}
		if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
			return importPath == prefix || strings.HasPrefix(importPath, prefix+"/")
		}
		return importPath == pattern
	})
}

// inModule makes a path relative to the repository, for messages.
func inModule(importPath string) string {
	return strings.TrimPrefix(importPath, module+"/")
}

// anyMatch tells whether one of the packages is meant by the patterns.
func anyMatch(packages []goPackage, patterns []string) bool {
	return slices.ContainsFunc(packages, func(p goPackage) bool { return matches(p.ImportPath, patterns) })
}

// example returns an import path that the first pattern matches.
func example(patterns []string) string {
	p := strings.TrimSuffix(patterns[0], "/...")
	if rest, ok := strings.CutPrefix(p, "./"); ok {
		return path.Join(module, rest)
	}
	return p
}
