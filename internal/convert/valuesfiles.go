// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/helm/document"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// ruleValues is the rule of problems with files of values, as Problem.Rule.
const ruleValues = "values"

// withFiles returns the options of a chart with the values of the files in the bundle: each over those before it, and those of
// the options over all.
func (e entered) withFiles(o Options) (helm.Options, []Problem) {
	options := o.Helm
	if len(o.ValuesFiles) == 0 {
		return options, nil
	}
	var problems []Problem
	reader := manifest.NewReader(e.base, o.Limits.OrDefault())
	merged := map[string]any{}
	for _, name := range o.ValuesFiles {
		read, problem := e.valuesFile(reader, name)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		merged = document.Over(merged, read)
	}
	options.Values = document.Over(merged, options.Values)
	return options, problems
}

// valuesFile reads one file. Only a problem says something of its content, by line.
func (e entered) valuesFile(reader *manifest.Reader, name string) (map[string]any, *Problem) {
	clean := path.Clean(name)
	if !fs.ValidPath(clean) || strings.Contains(name, `\`) {
		return nil, &Problem{Rule: ruleValues, Message: fmt.Sprintf("the path %q leaves the bundle", name), Remedy: "give a path inside it in spec.helm.valuesFiles, without a leading slash"}
	}
	linked, err := manifest.Linked(e.base, clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Problem{File: clean, Rule: ruleValues, Message: "the bundle has no such file", Remedy: "correct spec.helm.valuesFiles; " + e.beside(clean)}
	case err != nil:
		return nil, manifest.Unreadable(clean, err)
	case linked:
		return nil, &Problem{File: clean, Rule: ruleValues, Message: "the path leads through a symbolic link", Remedy: "give the file itself in spec.helm.valuesFiles"}
	}
	if info, err := fs.Stat(e.base, clean); err == nil && !info.Mode().IsRegular() {
		return nil, &Problem{File: clean, Rule: ruleValues, Message: "this is no regular file", Remedy: "name the file itself in spec.helm.valuesFiles; " + e.beside(path.Join(clean, "x"))}
	}
	data, ok := reader.Bytes(clean)
	if !ok {
		problems := reader.Problems()
		return nil, &problems[len(problems)-1]
	}
	read, wrong := document.Read(data)
	if wrong != "" {
		return nil, &Problem{File: clean, Rule: ruleValues, Message: wrong, Remedy: "correct the file"}
	}
	return read, nil
}

// mostBeside is how many files a message names.
const mostBeside = 10

// beside names the YAML and JSON files of the nearest folder of a path that exists.
func (e entered) beside(name string) string {
	folder := path.Dir(name)
	entries, err := fs.ReadDir(e.base, folder)
	for err != nil && folder != "." {
		folder = path.Dir(folder)
		entries, err = fs.ReadDir(e.base, folder)
	}
	var found []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && manifest.Named(entry.Name()) && len(found) < mostBeside {
			found = append(found, path.Join(folder, entry.Name()))
		}
	}
	where := "the folder " + folder
	if folder == "." {
		where = "the root of the bundle"
	}
	if len(found) == 0 {
		return where + " has no YAML files; paths are relative to the root of the bundle"
	}
	return where + " has " + strings.Join(found, ", ")
}
