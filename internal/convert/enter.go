// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/helm/load"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Enter returns the folder that holds a bundle and the bundle's format, as Convert finds them; its error is an *Error.
func Enter(files fs.FS, o Options) (fs.FS, Format, error) {
	e, problem := enter(files, o.Path)
	if problem != nil {
		return nil, "", manifest.AsError([]Problem{*problem})
	}
	format, problem := formatOf(e, o)
	if problem != nil {
		return nil, "", manifest.AsError([]Problem{*problem})
	}
	return e.root, format, nil
}

// DescribeChart reads what the chart among files says of itself; its error is an *Error.
func DescribeChart(files fs.FS, o Options) (helm.Description, error) {
	e, problem := enter(files, o.Path)
	if problem != nil {
		return helm.Description{}, manifest.AsError([]Problem{*problem})
	}
	described, problem := helm.Describe(e.root, e.packaged, o.Limits)
	if problem != nil {
		return helm.Description{}, manifest.AsError([]Problem{*problem})
	}
	return described, nil
}

// Unwrap returns the files of a bundle that paths are relative to: those given, or, where they are nothing but one folder with
// the mark of a format, those of that folder. Packages of charts and many archives have their files in such a folder.
func Unwrap(files fs.FS) (fs.FS, error) {
	base, _, problem := unwrap(files)
	if problem != nil {
		return nil, manifest.AsError([]Problem{*problem})
	}
	return base, nil
}

// unwrap returns the path of the folder as well.
func unwrap(files fs.FS) (base fs.FS, folder string, problem *Problem) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, "", manifest.Unreadable(".", err)
	}
	if len(entries) != 1 || !entries[0].IsDir() {
		return files, ".", nil
	}
	folder = entries[0].Name()
	inside, err := fs.Sub(files, folder)
	if err != nil {
		return nil, "", manifest.Unreadable(folder, err)
	}
	d := &detector{files: inside, limits: DefaultLimits()}
	if d.exists(annotationsFile) && d.exists(manifestsFolder) || d.marked(Helm) || d.marked(Kustomize) {
		return inside, folder, d.failed
	}
	return files, ".", d.failed
}

// entered is the part of a bundle's files that a conversion works on.
type entered struct {
	base     fs.FS  // what spec.path is relative to: see Unwrap
	wrapping string // the path of base in the tree; "." is the tree itself
	folder   string // the path of root in base; "." is base itself
	root     fs.FS
	packaged string // the package of a chart in root that spec.path names
}

// place is where the files of the bundle are in the tree.
func (e entered) place() string { return path.Join(e.wrapping, e.folder, e.packaged) }

// enter finds the folder that a path names, which must exist and lie inside. Without a path it is what Unwrap returns. Of the
// package of a chart it is the folder that the package lies in.
func enter(files fs.FS, folder string) (entered, *Problem) {
	clean := path.Clean(strings.TrimPrefix(folder, "./"))
	if folder == "" || clean == "." {
		base, wrapping, problem := unwrap(files)
		if problem != nil {
			return entered{}, problem
		}
		return entered{base: base, wrapping: wrapping, folder: ".", root: base}, nil
	}
	info, problem := look(files, folder, clean)
	if problem != nil {
		return entered{}, problem
	}
	e := entered{base: files, wrapping: ".", folder: clean}
	if info.Mode().IsRegular() && load.IsPackage(clean) {
		e.folder, e.packaged = path.Dir(clean), path.Base(clean)
	} else if !info.IsDir() {
		return entered{}, &Problem{Rule: manifest.RuleFile, Message: fmt.Sprintf("the bundle has no folder %q", clean), Remedy: "correct spec.path"}
	}
	var err error
	if e.root, err = fs.Sub(files, e.folder); err != nil {
		return entered{}, &Problem{Rule: manifest.RuleFile, Message: fmt.Sprintf("the folder %q cannot be entered", e.folder)}
	}
	return e, nil
}

// look finds what a path inside the bundle names.
func look(files fs.FS, written, clean string) (fs.FileInfo, *Problem) {
	if !fs.ValidPath(clean) || strings.Contains(written, `\`) {
		return nil, &Problem{Rule: manifest.RuleFile, Message: fmt.Sprintf("the path %q leaves the bundle", written),
			Remedy: "give a folder inside it, without a leading slash"}
	}
	linked, err := manifest.Linked(files, clean)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, manifest.Unreadable(clean, err)
	}
	if linked {
		return nil, &Problem{Rule: manifest.RuleFile, Message: fmt.Sprintf("the path %q leads through a symbolic link", clean), Remedy: "give the folder itself"}
	}
	info, err := fs.Stat(files, clean)
	if err != nil {
		return nil, &Problem{Rule: manifest.RuleFile, Message: fmt.Sprintf("the bundle has no folder %q", clean), Remedy: "correct spec.path"}
	}
	return info, nil
}
