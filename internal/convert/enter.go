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
	root, packaged, problem := enter(files, o.Path)
	if problem != nil {
		return nil, "", manifest.AsError([]Problem{*problem})
	}
	format, problem := formatOf(root, packaged, o)
	if problem != nil {
		return nil, "", manifest.AsError([]Problem{*problem})
	}
	return root, format, nil
}

// DescribeChart reads what the chart among files says of itself; its error is an *Error.
func DescribeChart(files fs.FS, o Options) (helm.Description, error) {
	root, packaged, problem := enter(files, o.Path)
	if problem != nil {
		return helm.Description{}, manifest.AsError([]Problem{*problem})
	}
	described, problem := helm.Describe(root, packaged, o.Limits)
	if problem != nil {
		return helm.Description{}, manifest.AsError([]Problem{*problem})
	}
	return described, nil
}

// enter returns the part of files below folder, which must exist and lie inside. Of the package of a chart it is the folder
// that the package lies in, and the package's name.
func enter(files fs.FS, folder string) (root fs.FS, packaged string, problem *Problem) {
	clean := path.Clean(strings.TrimPrefix(folder, "./"))
	if folder == "" || clean == "." {
		return files, "", nil
	}
	info, problem := look(files, folder, clean)
	if problem != nil {
		return nil, "", problem
	}
	if info.Mode().IsRegular() && load.IsPackage(clean) {
		clean, packaged = path.Split(clean)
		if clean = path.Clean(clean); clean == "." {
			return files, packaged, nil
		}
	} else if !info.IsDir() {
		return nil, "", &Problem{Rule: manifest.RuleFile, Message: fmt.Sprintf("the bundle has no folder %q", clean), Remedy: "correct spec.path"}
	}
	root, err := fs.Sub(files, clean)
	if err != nil {
		return nil, "", &Problem{Rule: manifest.RuleFile, Message: fmt.Sprintf("the folder %q cannot be entered", clean)}
	}
	return root, packaged, nil
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
