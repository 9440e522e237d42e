// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxFunctionLines = 60
	maxMainLines     = 60
	maxMakefileLines = 199
	licence          = "// SPDX-License-Identifier: Apache-2.0"
)

// product are the folders of the code that is shipped.
var product = []string{"api/", "cmd/", "internal/", "migrate/cmd/", "migrate/internal/"}

// sourceFile is a file that git knows or would add.
type sourceFile struct {
	name    string // relative to the repository
	content []byte
}

// isProduct tells whether the file is shipped and written by hand.
func (f sourceFile) isProduct() bool {
	return slices.ContainsFunc(product, func(dir string) bool { return strings.HasPrefix(f.name, dir) }) &&
		!strings.HasSuffix(f.name, "_test.go") && !strings.HasPrefix(path.Base(f.name), "zz_generated")
}

// sources returns all files that match one of the patterns of git.
func sources(t *testing.T, patterns ...string) []sourceFile {
	t.Helper()
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	var files []sourceFile
	for name := range strings.SplitSeq(string(run(t, "git", args...)), "\x00") {
		if name == "" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root(t), name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, sourceFile{name, content})
	}
	return files
}

// TestSPDX wants the licence among the first lines of each Go file, as generated ones have a build
// constraint before it.
func TestSPDX(t *testing.T) {
	for _, f := range sources(t, "*.go") {
		if violation := unlicensed(f); violation != "" {
			t.Error(violation)
		}
	}
}

func unlicensed(f sourceFile) string {
	head := bytes.SplitN(f.content, []byte("\n"), 6)
	if slices.ContainsFunc(head, func(line []byte) bool { return string(line) == licence }) {
		return ""
	}
	return fmt.Sprintf("%s has no licence line: begin it with %q", f.name, licence)
}

func TestMakefileIsShort(t *testing.T) {
	for _, f := range sources(t, "Makefile") {
		if lines := bytes.Count(f.content, []byte("\n")); lines > maxMakefileLines {
			t.Errorf("Makefile has %d lines, more than %d: move logic into a program", lines, maxMakefileLines)
		}
	}
}

// TestSourceRules parses the product and applies the rules to each file.
func TestSourceRules(t *testing.T) {
	seen := 0
	for _, f := range sources(t, "*.go") {
		if !f.isProduct() {
			continue
		}
		seen++
		for _, violation := range sourceViolations(t, f) {
			t.Error(violation)
		}
	}
	if seen == 0 {
		t.Error("no source of the product was found: correct the list of its folders")
	}
}

// sourceViolations returns a message for each rule that a file breaks.
func sourceViolations(t *testing.T, f sourceFile) []string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, f.name, f.content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	found := slices.Concat(longFunctions(files, parsed), longMain(files, f, parsed), badPackageName(f, parsed))
	if !strings.HasPrefix(f.name, "internal/cli/") && !strings.HasPrefix(f.name, "migrate/internal/") && f.name != "internal/apply/tenant/user.go" && bytes.Contains(f.content, []byte("ForUser(")) {
		found = append(found, f.name+": tenant.ForUser acts as the user who runs the program: a controller has to use a client that impersonates a ServiceAccount")
	}
	if strings.HasPrefix(f.name, "api/") {
		found = append(found, apiLogic(f, parsed)...)
	}
	if path.Dir(f.name) != "internal/worker" {
		found = append(found, startsProcess(files, parsed)...)
	}
	found = append(found, convertsInProcess(files, f, parsed)...)
	found = append(found, plansElsewhere(files, f, parsed)...)
	if matches(module+"/"+path.Dir(f.name), pure) {
		found = append(found, clockReads(files, parsed)...)
	}
	return found
}

// apiFunctions are all that api/ has beside types: registration, what the interfaces of Flux ask for, and the JSON of a duration.
var apiFunctions = []string{"addKnownTypes", "GetConditions", "SetConditions", "GetRequeueAfter", "UnmarshalJSON", "MarshalJSON"}

func apiLogic(f sourceFile, parsed *ast.File) []string {
	var found []string
	for _, declaration := range parsed.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && !slices.Contains(apiFunctions, function.Name.Name) {
			found = append(found, fmt.Sprintf("%s: %s is logic, which all importers of the API get: move it to internal/spec/effective, or to the package that needs it",
				f.name, function.Name.Name))
		}
	}
	return found
}

func longFunctions(files *token.FileSet, parsed *ast.File) []string {
	var found []string
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start, end := files.Position(function.Pos()), files.Position(function.End())
		if lines := end.Line - start.Line + 1; lines > maxFunctionLines {
			found = append(found, fmt.Sprintf("%s: %s has %d lines, more than %d: cut it into named steps",
				start, function.Name.Name, lines, maxFunctionLines))
		}
	}
	return found
}

func longMain(files *token.FileSet, f sourceFile, parsed *ast.File) []string {
	lines := files.Position(parsed.End()).Line
	if !strings.HasPrefix(strings.TrimPrefix(f.name, "migrate/"), "cmd/") || lines <= maxMainLines {
		return nil
	}
	return []string{fmt.Sprintf("%s has %d lines, more than %d: a main only connects; move the rest into internal/",
		f.name, lines, maxMainLines)}
}

func badPackageName(f sourceFile, parsed *ast.File) []string {
	if !slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "types", "misc"}, parsed.Name.Name) {
		return nil
	}
	return []string{fmt.Sprintf("%s: the package name %s says nothing: name it after what it holds", f.name, parsed.Name.Name)}
}

// startsProcess finds calls that run a program. Packages that do nothing else are refused by their import.
func startsProcess(files *token.FileSet, parsed *ast.File) []string {
	var found []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if ok && slices.Contains([]string{"os", "syscall", "unix"}, pkg.Name) &&
			slices.Contains([]string{"StartProcess", "ForkExec", "Exec"}, selector.Sel.Name) {
			found = append(found, fmt.Sprintf("%s: %s.%s starts a program, which only internal/worker may: give the work to a Pool as a job",
				files.Position(selector.Pos()), pkg.Name, selector.Sel.Name))
		}
		return true
	})
	return found
}

// unboundedCalls are functions with a cost that is not linear in the size of untrusted content, and the folders that may use
// them: they implement one another, or run in worker processes only.
var unboundedCalls = map[string][]string{
	"convert.Convert":       {"internal/worker/jobs", "internal/lint"},
	"convert.DescribeChart": {"internal/worker/jobs"},
	"helm.Convert":          {"internal/convert"},
	"helm.Describe":         {"internal/convert"},
	"kustomize.Convert":     {"internal/convert"},
	"kustomize.Merge":       {"internal/convert/overlay"},
	"overlay.Apply":         {"internal/convert"},
	"registryv1.Convert":    {"internal/convert"},
	"crdsafety.Judge":       {"internal/worker/jobs"},
	"lint.Bundle":           {"internal/cli/inspect/examine.go"},
	"lint.PlainV0":          {"internal/cli/inspect/examine.go"},
}

// convertsInProcess finds uses of them elsewhere. Only uses as pkg.Function are found.
func convertsInProcess(files *token.FileSet, f sourceFile, parsed *ast.File) []string {
	var found []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		name := pkg.Name + "." + selector.Sel.Name
		allowed, unbounded := unboundedCalls[name]
		if unbounded && !slices.Contains(allowed, path.Dir(f.name)) && !slices.Contains(allowed, f.name) {
			found = append(found, fmt.Sprintf("%s: %s can take all time and memory of a process, whatever the size of the bundle: use package internal/worker/jobs, which does it in a worker process (ADR 19)",
				files.Position(selector.Pos()), name))
		}
		return true
	})
	return found
}

// plansElsewhere finds plans that are not made by package planning. Only uses as plan.Make are found.
func plansElsewhere(files *token.FileSet, f sourceFile, parsed *ast.File) []string {
	var found []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "Make" || path.Dir(f.name) == "internal/spec/planning" {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "plan" {
			found = append(found, fmt.Sprintf("%s: plan.Make beside internal/spec/planning, so a preview and the controller may plan differently: call planning.Make",
				files.Position(selector.Pos())))
		}
		return true
	})
	return found
}

// clockReads finds uses of the clock in packages that must not have one.
func clockReads(files *token.FileSet, parsed *ast.File) []string {
	var found []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Tick", "NewTimer"}, selector.Sel.Name) {
			found = append(found, fmt.Sprintf("%s: time.%s in a pure package: let the caller pass the time",
				files.Position(selector.Pos()), selector.Sel.Name))
		}
		return true
	})
	return found
}

// TestSourceRulesBite breaks each rule once.
func TestSourceRulesBite(t *testing.T) {
	body := strings.Repeat("\t_ = 1\n", maxFunctionLines)
	cases := map[string]struct {
		reason, file, source, want string
	}{
		"long function": {
			"a function of two screens is hard to read", "internal/x/x.go",
			"package x\n\nfunc f() {\n" + body + "}\n", "f has 62 lines",
		},
		"long main": {
			"what a main does cannot be tested", "cmd/x/main.go",
			"package main\n" + strings.Repeat("\n// x\nvar _ = 1\n", 30), "a main only connects",
		},
		"package of odds and ends": {
			"it grows for ever", "internal/util/x.go", "package util\n", "says nothing",
		},
		"clock in a pure package": {
			"what is previewed has to be what is executed", "internal/convert/plain/x.go",
			"package plain\n\nimport \"time\"\n\nvar x = time.Now()\n", "let the caller pass the time",
		},
		"a user's client in a controller": {
			"one code path without impersonation is enough to lose the tenant boundary", "internal/controller/x.go",
			"package controller\n\nvar x = tenant.ForUser(nil)\n", "acts as the user who runs the program",
		},
		"a process": {
			"what a worker process may do is decided in one place", "internal/convert/x.go",
			"package convert\n\nimport \"os\"\n\nvar x = os.StartProcess\n", "only internal/worker may",
		},
		"a process of a worker": {
			"the pool starts them", "internal/worker/x.go",
			"package worker\n\nimport \"os\"\n\nvar x = os.StartProcess\n", "",
		},
		"a conversion in a controller": {
			"a bundle of a few bytes can take all memory", "internal/controller/x.go",
			"package controller\n\nvar x = convert.Convert\n", "does it in a worker process",
		},
		"an examination in a command": {
			"it converts", "internal/cli/inspect/validate.go", "package inspect\n\nvar x = lint.Bundle\n", "does it in a worker process",
		},
		"a conversion in a job": {
			"it runs in a worker process", "internal/worker/jobs/x.go", "package jobs\n\nvar x = convert.Convert\n", "",
		},
		"a plan in a command": {
			"what is previewed has to be what is executed", "internal/cli/preview/x.go", "package preview\n\nvar x = plan.Make\n", "call planning.Make",
		},
		"a plan of the planning": {
			"it is the one place", "internal/spec/planning/x.go", "package planning\n\nvar x = plan.Make\n", "",
		},
		"a getter of the API": {
			"api/ has types, markers and condition names", "api/v1alpha1/x_types.go",
			"package v1alpha1\n\nfunc (in *BundleSource) IsUpload() bool { return false }\n", "IsUpload is logic",
		},
		"conditions of the API": {
			"controllers of Flux ask for them", "api/v1alpha1/x_types.go",
			"package v1alpha1\n\nfunc (in *BundleSource) GetConditions() []metav1.Condition { return nil }\n", "",
		},
		"clock elsewhere": {
			"controllers may look at the clock", "internal/controller/x.go",
			"package controller\n\nimport \"time\"\n\nvar x = time.Now()\n", "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := strings.Join(sourceViolations(t, sourceFile{tc.file, []byte(tc.source)}), "\n")
			if (tc.want == "") != (found == "") || !strings.Contains(found, tc.want) {
				t.Errorf("%s: got %q, want a message with %q", tc.reason, found, tc.want)
			}
		})
	}
	if unlicensed(sourceFile{"x.go", []byte("package x\n")}) == "" {
		t.Error("a file without a licence line was accepted")
	}
}
