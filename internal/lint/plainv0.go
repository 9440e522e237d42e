// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Rules of RukPak for plain+v0 bundles, as Problem.Rule. Satchel accepts more than these allow.
const (
	RulePlainFolder  = "plain-folder"  // all manifests lie in manifests/ at the root
	RulePlainFlat    = "plain-flat"    // which has no folders
	RulePlainContent = "plain-content" // and nothing but manifests
)

// plainFolder is where RukPak looks for manifests.
const plainFolder = "manifests"

// PlainV0 checks a bundle as Bundle does, and against the rules that RukPak documents for plain+v0: a violation is an error.
// Problems have the line of their document, or a more precise one, if it is known.
func PlainV0(files fs.FS, o convert.Options) Report {
	o.Format = convert.PlainV0
	root, _, err := convert.Enter(files, o)
	if err != nil {
		return Report{Problems: order(refusals(err))}
	}
	report := Bundle(files, o)
	report.Problems = slices.DeleteFunc(report.Problems, isLeftOut)
	report.Problems = order(append(report.Problems, strictlyPlain(root, o.Limits)...))
	locate(root, report.Problems)
	return report
}

// isLeftOut tells the warning about files that are left out: by RukPak's rules each of them is an error.
func isLeftOut(p Problem) bool { return p.Severity == Warning && p.Rule == "P4" }

// strictlyPlain are the violations of RukPak's rules only.
func strictlyPlain(root fs.FS, limits convert.Limits) []Problem {
	info, err := fs.Lstat(root, plainFolder)
	if err != nil || !info.IsDir() {
		return []Problem{{
			Severity: Error, Rule: RulePlainFolder, Message: "there is no folder manifests/ at the root of the bundle, where RukPak looks for manifests",
			Remedy: "move the manifests into it",
		}}
	}
	entries, err := fs.ReadDir(root, plainFolder)
	if err != nil {
		return refusals(manifest.AsError([]manifest.Problem{*manifest.Unreadable(plainFolder, err)}))
	}
	var found []Problem
	reader := manifest.NewReader(root, limits)
	for _, entry := range entries {
		if p := strictEntry(reader, entry); p.Message != "" {
			p.Severity, p.File = Error, path.Join(plainFolder, entry.Name())
			found = append(found, p)
		}
	}
	return found
}

// strictEntry says what is wrong with something that lies in manifests/; without a message nothing is.
func strictEntry(reader *manifest.Reader, entry fs.DirEntry) Problem {
	name := entry.Name()
	switch {
	case entry.IsDir():
		return Problem{Rule: RulePlainFlat, Message: "this is a folder, and manifests/ has to be flat", Remedy: "move its manifests up into manifests/"}
	case !manifest.Named(name):
		return Problem{Rule: RulePlainContent, Message: "this is no manifest by its name (.yaml, .yml, .json), and RukPak takes all that is in manifests/ for one",
			Remedy: "move it out of manifests/"}
	case strings.HasPrefix(name, "."):
		return Problem{Rule: RulePlainContent, Message: "this file is hidden: Satchel leaves it out, and RukPak takes it for a manifest",
			Remedy: "rename it, or move it out of manifests/"}
	}
	before := len(reader.Problems())
	if len(reader.Read(path.Join(plainFolder, name))) == 0 && len(reader.Problems()) == before {
		return Problem{Rule: RulePlainContent, Message: "this file holds no object", Remedy: "remove it"}
	}
	return Problem{}
}
