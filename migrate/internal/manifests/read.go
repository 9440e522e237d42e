// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/migrate/internal/translate/registriesconf"
)

// readManifests reads files, folders and standard input. What is wrong with any of them is said at once.
func readManifests(a *kit.App, args []string) ([]manifest.Manifest, error) {
	var found []manifest.Manifest
	var problems []manifest.Problem
	for _, arg := range args {
		here, wrong, err := readArgument(a, arg)
		if err != nil {
			return nil, err
		}
		found, problems = append(found, here...), append(problems, wrong...)
	}
	return found, manifest.AsError(problems)
}

// readArgument reads one of them.
func readArgument(a *kit.App, arg string) ([]manifest.Manifest, []manifest.Problem, error) {
	if arg == "-" {
		data, err := io.ReadAll(io.LimitReader(a.Streams.In, manifest.DefaultLimits().FileBytes+1))
		if err != nil {
			return nil, nil, fmt.Errorf("reading standard input: %w", err)
		}
		const name = "standard-input"
		found, problems := manifestsOf(oneFile{name: name, data: data}, []string{name}, nil)
		return found, problems, nil
	}
	resolved, err := filepath.EvalSymlinks(arg)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", arg, kit.WithoutPath(err))
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", arg, kit.WithoutPath(err))
	}
	if info.IsDir() {
		return readFolder(a, arg, resolved)
	}
	if filepath.Ext(arg) == registriesExtension {
		return readRegistries(a, arg, info.Size())
	}
	files, err := bundle.OpenFolder(filepath.Dir(resolved))
	if err != nil {
		return nil, nil, err
	}
	defer files.Close() //nolint:errcheck // opened for reading only: closing cannot lose anything
	base := filepath.Base(resolved)
	found, problems := manifestsOf(files, []string{base}, func(string) string { return arg })
	return found, problems, nil
}

// registriesExtension is that of a registries.conf.
const registriesExtension = ".conf"

// readRegistries reads a registries.conf.
func readRegistries(a *kit.App, file string, size int64) ([]manifest.Manifest, []manifest.Problem, error) {
	if most := manifest.DefaultLimits().FileBytes; size > most {
		return nil, nil, fmt.Errorf("reading %s: it has more than %d bytes", file, most)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", file, kit.WithoutPath(err))
	}
	found := registriesconf.Read(file, data)
	for _, note := range found.Notes {
		a.Note([]string{file + ": " + note})
	}
	return found.Manifests, found.Problems, nil
}

// readFolder reads the manifests of a folder and of those below.
func readFolder(a *kit.App, arg, resolved string) ([]manifest.Manifest, []manifest.Problem, error) {
	files, err := bundle.OpenFolder(resolved)
	if err != nil {
		return nil, nil, err
	}
	defer files.Close() //nolint:errcheck // opened for reading only: closing cannot lose anything
	var names []string
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && manifest.Named(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the folder %s: %w", arg, err)
	}
	for _, link := range files.Links() {
		a.Note([]string{filepath.Join(arg, link) + " is a symbolic link and left out"})
	}
	if len(names) == 0 {
		a.Note([]string{"the folder " + bundle.FolderName(arg) + " holds no file that ends in .yaml, .yml or .json"})
	}
	found, problems := manifestsOf(files, names, func(name string) string { return filepath.Join(arg, name) })
	return found, problems, nil
}

// manifestsOf reads files, and calls them as the user does.
func manifestsOf(files fs.FS, names []string, called func(string) string) ([]manifest.Manifest, []manifest.Problem) {
	reader := manifest.NewReader(files, manifest.Limits{})
	var found []manifest.Manifest
	for _, name := range names {
		found = append(found, reader.Read(name)...)
	}
	problems := append(reader.Problems(), manifest.Identities(found)...)
	if called == nil {
		return found, problems
	}
	for i := range found {
		found[i].File = called(found[i].File)
	}
	for i := range problems {
		problems[i].File = called(problems[i].File)
	}
	return found, problems
}

// oneFile is a file system of one file.
type oneFile struct {
	name string
	data []byte
}

// Open implements fs.FS.
func (f oneFile) Open(name string) (fs.File, error) {
	if name != f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openedFile{Reader: bytes.NewReader(f.data), of: f}, nil
}

// Lstat implements fs.ReadLinkFS: there are no links.
func (f oneFile) Lstat(name string) (fs.FileInfo, error) {
	if name != f.name {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	}
	return f, nil
}

// ReadLink implements fs.ReadLinkFS.
func (f oneFile) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: errors.ErrUnsupported}
}

// Name and the following implement fs.FileInfo.
func (f oneFile) Name() string { return f.name }

// Size is that of the content.
func (f oneFile) Size() int64 { return int64(len(f.data)) }

// Mode is that of a file.
func (oneFile) Mode() fs.FileMode { return 0o400 }

// ModTime is not known.
func (oneFile) ModTime() time.Time { return time.Time{} }

// IsDir is false.
func (oneFile) IsDir() bool { return false }

// Sys is nothing.
func (oneFile) Sys() any { return nil }

// openedFile is the one file while it is read.
type openedFile struct {
	*bytes.Reader

	of oneFile
}

// Stat implements fs.File.
func (f *openedFile) Stat() (fs.FileInfo, error) { return f.of, nil }

// Close implements fs.File.
func (*openedFile) Close() error { return nil }
