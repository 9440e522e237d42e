// SPDX-License-Identifier: Apache-2.0

package author

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/scaffold"
	"github.com/satchel-dev/satchel/internal/view"
)

// writing lists the files that init writes. Its JSON form is what init -o json prints.
type writing struct {
	Format string   `json:"format"`
	Create []string `json:"create,omitempty"`
	Differ []string `json:"replace,omitempty"`
	Same   []string `json:"unchanged,omitempty"`
	Kept   []string `json:"kept,omitempty"` // in the folder of the bundle, and not written by init

	dir string
}

// SortedKeys are the keys of a map, sorted.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// planWriting compares the files with what is in the folder, which need not exist.
func planWriting(dir string, files map[string][]byte) (writing, error) {
	w := writing{dir: dir}
	for _, name := range SortedKeys(files) {
		present, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			w.Create = append(w.Create, name)
		case err != nil:
			return w, fmt.Errorf("reading %s in %s: %w", name, dir, kit.WithoutPath(err))
		case bytes.Equal(present, files[name]):
			w.Same = append(w.Same, name)
		default:
			w.Differ = append(w.Differ, name)
		}
	}
	return w, w.lookForOthers(files)
}

// lookForOthers finds other files in the folder of the bundle: they become part of the bundle.
func (w *writing) lookForOthers(files map[string][]byte) error {
	err := fs.WalkDir(os.DirFS(w.dir), bundleFolder, func(name string, entry fs.DirEntry, err error) error {
		if _, written := files[name]; err == nil && !entry.IsDir() && !written {
			w.Kept = append(w.Kept, name)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the folder %s: %w", w.dir, kit.WithoutPath(err))
	}
	return nil
}

// write writes files that are new or differ. It does not follow links out of the folder.
func (w writing) write(files map[string][]byte) (err error) {
	if err := os.MkdirAll(w.dir, 0o755); err != nil { //nolint:gosec // to be committed, readable by all users
		return fmt.Errorf("creating the folder %s: %w", w.dir, kit.WithoutPath(err))
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return fmt.Errorf("opening the folder %s: %w", w.dir, kit.WithoutPath(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range append(slices.Clone(w.Create), w.Differ...) {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return fmt.Errorf("creating the folder of %s in %s: %w", name, w.dir, kit.WithoutPath(err))
		}
		if err := root.WriteFile(name, files[name], 0o644); err != nil {
			return fmt.Errorf("writing %s in %s: %w", name, w.dir, kit.WithoutPath(err))
		}
	}
	return nil
}

// printInit says what was written, and what comes next.
func printInit(a *kit.App, o initOptions, taken scaffold.Bundle, w writing) error {
	w.Format = string(taken.Format)
	switch o.output {
	case printer.OutputJSON:
		return printer.PrintValue(a.Streams.Out, o.output, w)
	case printer.OutputName:
		for _, name := range append(slices.Clone(w.Create), w.Differ...) {
			fmt.Fprintln(a.Streams.Out, view.Printable(path.Join(filepath.ToSlash(o.dir), name)))
		}
		return nil
	}
	var out strings.Builder
	done := "Wrote"
	if o.dryRun {
		done = "Would write"
	}
	fmt.Fprintf(&out, "%s the bundle %s (%s) into %s:\n", done, o.name, w.Format, view.Inline(o.dir))
	for _, part := range []struct {
		word  string
		names []string
	}{{"new", w.Create}, {"replaced", w.Differ}, {"as before", w.Same}, {"kept", w.Kept}} {
		for _, name := range part.names {
			fmt.Fprintf(&out, "  %-10s %s\n", part.word, view.Inline(name))
		}
	}
	out.WriteString(afterInit(a, o))
	_, err := fmt.Fprint(a.Streams.Out, out.String())
	return err
}

// afterInit says what comes next.
func afterInit(a *kit.App, o initOptions) string {
	at := func(name string) string { return view.ShellWord(filepath.ToSlash(filepath.Join(o.dir, name))) }
	lines := []string{fmt.Sprintf("%s validate %s", a.Name, at(bundleFolder))}
	switch {
	case o.git != "":
		lines = append(lines, "git add "+view.ShellWord(o.dir)+" && git commit && git push")
	case o.image != "":
		lines = append(lines, fmt.Sprintf("%s bundle push %s %s", a.Name, at(bundleFolder), view.ShellWord(o.image)))
	default:
		lines = append(lines, fmt.Sprintf("%s bundle push %s REGISTRY/%s:v0.1.0    # and write that into %s", a.Name, at(bundleFolder), o.name, at(deploymentFile)))
	}
	lines = append(lines, "kubectl apply -f "+at(rbacFile)+"    # once, by an administrator who may grant these permissions; read them first", "kubectl apply -f "+at(deploymentFile))
	return "\nNext:\n  " + strings.Join(lines, "\n  ") + "\n"
}
