// SPDX-License-Identifier: Apache-2.0

package load

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"helm.sh/helm/v4/pkg/chart/loader/archive"

	"github.com/satchel-dev/satchel/internal/convert/helm/message"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// mostOverhead is how much larger than its files a package's archive may be, in headers.
const mostOverhead = 2

// unpack returns the files of a package, sorted, without the folder that they all lie in. Nothing is written anywhere.
func (b *budget) unpack(name string, data []byte) ([]*archive.BufferedFile, *manifest.Problem) {
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, notPackage(name, "it is not compressed by gzip")
	}
	limited := &io.LimitedReader{R: compressed, N: b.limit*mostOverhead + 1}
	reader := tar.NewReader(limited)
	var all []*archive.BufferedFile
	seen := map[string]bool{}
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, b.broken(name, limited)
		}
		file, problem := b.entry(name, header, reader)
		if problem != nil {
			return nil, problem
		}
		if file == nil {
			continue
		}
		if seen[file.Name] {
			return nil, &manifest.Problem{File: name + "/" + file.Name, Rule: manifest.RuleFile, Message: "the package holds this file twice", Remedy: "package the chart again"}
		}
		seen[file.Name] = true
		all = append(all, file)
	}
	if _, err := io.Copy(io.Discard, limited); err != nil || limited.N <= 0 { // the check sum comes last
		return nil, b.broken(name, limited)
	}
	slices.SortFunc(all, func(a, b *archive.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func notPackage(name, why string) *manifest.Problem {
	return &manifest.Problem{File: name, Rule: message.Rule, Message: "this is no package of a chart: " + why, Remedy: "make it with helm package"}
}

func (b *budget) broken(name string, limited *io.LimitedReader) *manifest.Problem {
	if limited.N <= 0 {
		return &manifest.Problem{File: name, Rule: manifest.RuleLimit, Message: fmt.Sprintf("the package unpacks to more than %d bytes", b.limit*mostOverhead), Remedy: remedyLimit}
	}
	return notPackage(name, "the archive is damaged")
}

// entry reads one file of an archive; nil for what is no file.
func (b *budget) entry(archived string, header *tar.Header, content io.Reader) (*archive.BufferedFile, *manifest.Problem) {
	switch header.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil, b.take(archived, 0)
	default:
		return nil, irregular(archived + "/" + message.Shorten(message.Printable(header.Name)))
	}
	name, ok := belowTop(header.Name)
	if !ok {
		return nil, &manifest.Problem{File: archived, Rule: manifest.RuleFile, Remedy: "package the chart again",
			Message: fmt.Sprintf("the package holds %q, which is not in the folder of the chart", message.Shorten(message.Printable(header.Name)))}
	}
	if problem := b.take(archived+"/"+name, header.Size); problem != nil {
		return nil, problem
	}
	data, err := io.ReadAll(io.LimitReader(content, header.Size))
	if err != nil || int64(len(data)) != header.Size {
		return nil, notPackage(archived, "the archive is damaged")
	}
	return &archive.BufferedFile{Name: name, Data: trimMark(data)}, nil
}

// belowTop takes the first folder off a name, which has to be one that stays within it.
func belowTop(name string) (string, bool) {
	name = strings.TrimPrefix(name, "./")
	_, below, found := strings.Cut(name, "/")
	below = path.Clean(below)
	if !found || below == "." || path.IsAbs(name) || !fs.ValidPath(below) || strings.ContainsFunc(below, unicode.IsControl) || strings.ContainsAny(below, `\:`) {
		return "", false
	}
	return below, true
}

// flatten replaces packages among the charts that a chart contains by their files, so that the loader unpacks nothing.
func (b *budget) flatten(files []*archive.BufferedFile, depth int) ([]*archive.BufferedFile, *manifest.Problem) {
	flat := make([]*archive.BufferedFile, 0, len(files))
	for _, file := range files {
		folder, base := path.Split(file.Name)
		if !contained(folder) || path.Ext(base) != packageSuffix || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
			flat = append(flat, file)
			continue
		}
		if depth == mostPackages {
			return nil, &manifest.Problem{File: file.Name, Rule: manifest.RuleLimit, Message: fmt.Sprintf("packages lie within one another more than %d times", mostPackages), Remedy: remedyLimit}
		}
		within, problem := b.unpack(file.Name, file.Data)
		if problem != nil {
			return nil, problem
		}
		if within, problem = b.flatten(within, depth+1); problem != nil {
			return nil, problem
		}
		for _, inner := range within {
			inner.Name = file.Name + unpacked + "/" + inner.Name
			flat = append(flat, inner)
		}
	}
	return flat, nil
}

// unpacked is what the name of the folder ends in that takes the place of a package: no other folder has the name.
const unpacked = ".unpacked"

// contained tells whether a folder is charts/ of a chart, or of one that it contains.
func contained(folder string) bool {
	parts := strings.Split(strings.TrimSuffix(folder, "/"), "/")
	for i, part := range parts {
		if i%2 == 0 && part != "charts" {
			return false
		}
	}
	return len(parts)%2 == 1
}
