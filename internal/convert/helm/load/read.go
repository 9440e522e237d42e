// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/satchel-dev/satchel/internal/convert/helm/message"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Bounds of a chart's files, beside the limits of the manifests.
const (
	mostFiles      = 10_000
	mostFileBytes  = 5 << 20 // Helm's own limit
	mostIgnore     = 64 << 10
	mostPackages   = 5 // within one another
	packageSuffix  = ".tgz"
	remedyLimit    = "leave files out that no template needs, or split the chart"
	remedySymlinks = "replace the link by what it points to"
)

// budget is what a chart's files, and those of charts that it contains, may still have.
type budget struct {
	files int
	bytes int64
	limit int64
}

func newBudget(limits manifest.Limits) *budget {
	return &budget{files: mostFiles, bytes: limits.TotalBytes, limit: limits.TotalBytes}
}

// take counts a file of a size.
func (b *budget) take(name string, size int64) *manifest.Problem {
	b.files--
	b.bytes -= size
	switch {
	case b.files < 0:
		return &manifest.Problem{File: name, Rule: manifest.RuleLimit, Message: fmt.Sprintf("the chart has more than %d files", mostFiles), Remedy: remedyLimit}
	case size > mostFileBytes:
		return &manifest.Problem{File: name, Rule: manifest.RuleLimit, Message: fmt.Sprintf("the file is larger than %d bytes", mostFileBytes), Remedy: remedyLimit}
	case b.bytes < 0 || size < 0:
		return &manifest.Problem{File: name, Rule: manifest.RuleLimit, Message: fmt.Sprintf("the files of the chart up to here are larger than %d bytes in all", b.limit), Remedy: remedyLimit}
	}
	return nil
}

// readFile returns a regular file within the budget.
func (b *budget) readFile(files fs.FS, name string) ([]byte, *manifest.Problem) {
	f, err := files.Open(name)
	if err != nil {
		return nil, manifest.Unreadable(name, err)
	}
	defer f.Close() //nolint:errcheck // opened for reading only: closing cannot lose anything
	data, err := io.ReadAll(io.LimitReader(f, min(b.bytes, mostFileBytes)+1))
	if err != nil {
		return nil, manifest.Unreadable(name, err)
	}
	return trimMark(data), b.take(name, int64(len(data)))
}

// trimMark takes a byte order mark away.
func trimMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// readFolder returns the files of a chart's folder, sorted, without those that .helmignore names.
func (b *budget) readFolder(files fs.FS) ([]*archive.BufferedFile, *manifest.Problem) {
	rules, problem := ignored(files)
	if problem != nil {
		return nil, problem
	}
	var all []*archive.BufferedFile
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case rules.Ignore(name, info) && entry.IsDir():
			return fs.SkipDir
		case rules.Ignore(name, info) || entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			problem = irregular(name)
			return fs.SkipAll
		}
		var data []byte
		if data, problem = b.readFile(files, name); problem != nil {
			return fs.SkipAll
		}
		all = append(all, &archive.BufferedFile{Name: name, Data: data})
		return nil
	})
	if err != nil && problem == nil {
		problem = manifest.Unreadable(".", err)
	}
	slices.SortFunc(all, func(a, b *archive.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	return all, problem
}

func irregular(name string) *manifest.Problem {
	return &manifest.Problem{File: name, Rule: manifest.RuleFile, Message: "this is a link or a device, not a regular file", Remedy: remedySymlinks}
}

// ignored reads .helmignore.
func ignored(files fs.FS) (*ignore.Rules, *manifest.Problem) {
	info, err := fs.Lstat(files, ignore.HelmIgnore)
	rules := ignore.Empty()
	if err == nil {
		if !info.Mode().IsRegular() {
			return nil, irregular(ignore.HelmIgnore)
		}
		own := budget{files: 1, bytes: mostIgnore, limit: mostIgnore}
		data, problem := own.readFile(files, ignore.HelmIgnore)
		if problem != nil {
			return nil, problem
		}
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, &manifest.Problem{File: ignore.HelmIgnore, Rule: message.Rule, Message: "a line is no pattern: " + err.Error(), Remedy: "correct it"}
		}
	}
	rules.AddDefaults()
	return rules, nil
}

// Packaged returns the name of the one chart package that a folder holds; empty where it holds none, or several.
func Packaged(files fs.FS) (string, error) {
	entries, err := fs.ReadDir(files, ".")
	found := ""
	for _, entry := range entries {
		if !entry.Type().IsRegular() || path.Ext(entry.Name()) != packageSuffix {
			continue
		}
		if found != "" {
			return "", nil
		}
		found = entry.Name()
	}
	return found, err
}

// IsPackage tells whether a path names a package of a chart.
func IsPackage(name string) bool { return path.Ext(name) == packageSuffix }
