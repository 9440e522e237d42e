// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/fetch/ignore"
)

// Source is a folder, or one file of it, that an author names.
type Source struct {
	// Name as the author wrote it.
	Name string
	// Files of the folder.
	Files fs.FS
	// File is the one that is meant; empty: the folder.
	File string
}

// Bundle is the files of a bundle that is about to be written.
type Bundle struct {
	Files  map[string][]byte
	Format convert.Format
	// Path is the folder of Files that spec.path names; empty: the root.
	Path string
	// Notes say what was recognised, taken and left out.
	Notes []string
}

// mostBytes bounds what is read: a bundle with more manifests is refused anyway.
const mostBytes = 64 << 20

// Take makes a bundle of the files that the author names. The format of a folder is detected, unless a format is
// wanted; several sources are plain manifests.
func Take(sources []Source, want convert.Format, folder string) (Bundle, error) {
	if len(sources) == 1 && strings.HasSuffix(sources[0].File, ".tgz") {
		return takePackage(sources[0], want)
	}
	if len(sources) != 1 || sources[0].File != "" {
		return several(sources, want, folder)
	}
	source := sources[0]
	if _, err := fs.Stat(source.Files, projectFile); err == nil && want != convert.Helm {
		return takeProject(source, want, folder)
	}
	return takeFolder(source, want, folder)
}

// takeFolder takes a folder of one format.
func takeFolder(source Source, want convert.Format, folder string) (Bundle, error) {
	_, format, err := convert.Enter(source.Files, convert.Options{Format: want, Path: folder})
	if err == nil && path.Clean("./"+folder) == "." {
		source.Files, err = convert.Unwrap(source.Files)
	}
	if err != nil {
		return Bundle{}, fmt.Errorf("reading %s: %w", source.Name, err)
	}
	t := taker{Bundle: Bundle{Format: format, Files: map[string][]byte{}}}
	switch format {
	case convert.PlainV0:
		err = t.manifests(source, folder, "")
	case convert.RegistryV1:
		err = errors.Join(t.tree(source, path.Join(folder, "manifests"), "manifests", all),
			t.tree(source, path.Join(folder, "metadata"), "metadata", all))
		t.note("%s: taken are the folders manifests and metadata", source.Name)
	default: // charts and kustomizations may use any of their files
		err = t.tree(source, ".", ".", all)
		if inside := path.Clean("./" + folder); inside != "." {
			t.Path = inside
		}
	}
	return t.finish(err)
}

// takePackage takes a chart as it is packaged.
func takePackage(source Source, want convert.Format) (Bundle, error) {
	if want != "" && want != convert.Helm {
		return Bundle{}, fmt.Errorf("%s is a package of a chart by its name, and the format is to be %s: unpack it, and name its folder", source.Name, want)
	}
	t := taker{Bundle: Bundle{Format: convert.Helm, Files: map[string][]byte{}}}
	return t.finish(t.file(source, source.File, path.Base(source.File)))
}

// several takes files and folders of manifests.
func several(sources []Source, want convert.Format, folder string) (Bundle, error) {
	if want != "" && want != convert.PlainV0 {
		return Bundle{}, fmt.Errorf("files and several folders are plain manifests, and the format %s needs one folder", want)
	}
	t := taker{Bundle: Bundle{Format: convert.PlainV0, Files: map[string][]byte{}}}
	for _, source := range sources {
		var err error
		switch {
		case source.File == "":
			err = t.manifests(source, folder, path.Base(source.Name))
		case !manifest.Named(source.File):
			err = fmt.Errorf("%s is no manifest by its name: rename it to end in .yaml, .yml or .json", source.Name)
		default:
			err = t.file(source, source.File, path.Join("manifests", path.Base(source.File)))
		}
		if err != nil {
			return Bundle{}, err
		}
	}
	return t.finish(nil)
}

// taker collects files.
type taker struct {
	Bundle

	bytes   int64
	skipped []string
}

func (t *taker) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// finish ends a bundle.
func (t *taker) finish(err error) (Bundle, error) {
	if err != nil {
		return Bundle{}, err
	}
	if len(t.skipped) > 0 {
		t.note("%s", manifest.Skipped(t.skipped))
	}
	if len(t.Files) == 0 {
		return Bundle{}, errors.New("nothing was found to make a bundle of: name files or folders of manifests with --from")
	}
	return t.Bundle, nil
}

// manifests takes the manifests of a folder, or of manifests/ in it, where there is one.
func (t *taker) manifests(source Source, folder, below string) error {
	root := path.Join(".", folder)
	if info, err := fs.Lstat(source.Files, path.Join(root, "manifests")); err == nil && info.IsDir() {
		root = path.Join(root, "manifests")
	}
	return t.tree(source, root, path.Join("manifests", below), func(name string) bool {
		hidden := slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
		taken := !hidden && manifest.Named(name)
		if !taken {
			t.skipped = append(t.skipped, name)
		}
		return taken
	})
}

// all takes every file.
func all(string) bool { return true }

// tree takes the files below a folder that are wanted, by their names in it; folders of version control are left out.
func (t *taker) tree(source Source, from, to string, wanted func(string) bool) error {
	files, err := ignore.FS(source.Files, "")
	if err != nil {
		return err
	}
	return fs.WalkDir(files, from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return describe(source, name, err)
		}
		below := name
		if from != "." {
			below = strings.TrimPrefix(name, from+"/")
		}
		switch {
		case !entry.Type().IsRegular():
			t.note("%s is no regular file, and left out", name)
			return nil
		case !wanted(below):
			return nil
		}
		return t.file(source, name, path.Join(to, below))
	})
}

// file takes one file under another name.
func (t *taker) file(source Source, name, to string) error {
	if _, there := t.Files[to]; there {
		return fmt.Errorf("two files would be %s in the bundle, one of them %s of %s: rename it", to, name, source.Name)
	}
	file, err := source.Files.Open(name)
	if err != nil {
		return describe(source, name, err)
	}
	defer file.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(file, mostBytes-t.bytes+1))
	if err != nil {
		return describe(source, name, err)
	}
	if t.bytes += int64(len(content)); t.bytes > mostBytes {
		return fmt.Errorf("%s holds more than %d MiB: name the folder of the bundle only", source.Name, mostBytes>>20)
	}
	t.Files[to] = content
	return nil
}

// describe names what could not be read, without saying its path twice.
func describe(source Source, name string, err error) error {
	if err == nil {
		return nil
	}
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("reading %s of %s: %w", name, source.Name, err)
}
