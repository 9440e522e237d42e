// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
)

// indexIgnore names the files with patterns of files that are no part of the catalog.
const indexIgnore = ".indexignore"

// Walk visits the blobs of a folder or a file of files, in order of path and position. An error of visit ends it.
func Walk(files fs.FS, root string, limits Limits, visit func(Blob) error) error {
	ignored, err := readIgnore(files, root)
	if err != nil {
		return err
	}
	w := &walk{files: files, root: root, limits: limits, visit: visit}
	return fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() || entry.Name() == indexIgnore && name != root || ignored(name):
			return nil
		case isFolder(files, name, entry):
			return nil
		}
		return w.file(name)
	})
}

// isFolder tells that a symbolic link leads to a folder, as those of mounted ConfigMaps do. Links are not followed,
// because their target is visited by itself.
func isFolder(files fs.FS, name string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := fs.Stat(files, name)
	return err == nil && info.IsDir()
}

// walk is one walk over a catalog.
type walk struct {
	files  fs.FS
	root   string
	limits Limits
	visit  func(Blob) error
	read   int64 // bytes of the files so far
}

// visitError marks errors of the visitor, which are no errors of the file.
type visitError struct{ error }

func (e visitError) Unwrap() error { return e.error }

// file reads one file. Whether it is JSON is guessed from its first character, as operator-registry does. What looks
// like JSON and is none is read on as YAML, of which JSON is a part: {schema: olm.package} or documents between ---.
func (w *walk) file(name string) error {
	number := 0
	emit := func(blob []byte) error {
		if !bytes.HasPrefix(bytes.TrimSpace(blob), []byte("{")) {
			return errors.New("this is no object with the field schema")
		}
		number++
		if err := w.visit(newBlob(name, number, blob)); err != nil {
			return visitError{err}
		}
		return nil
	}
	valid, err := w.open(name, 0, func(file io.Reader) (int64, error) {
		return readBlobs(file, w.limits.Blob, emit)
	})
	if errors.Is(err, errNotJSON) {
		_, yamlErr := w.open(name, valid, func(file io.Reader) (int64, error) {
			return 0, readYAML(file, w.limits.Blob, emit)
		})
		if yamlErr == nil || errors.As(yamlErr, new(visitError)) {
			err = yamlErr
		}
	}
	var visited visitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &visited):
		return visited.error
	case errors.As(err, new(*LimitError)):
		return fmt.Errorf("%s, blob %d: %w", name, number+1, err)
	}
	err = fmt.Errorf("%s, blob %d: %w", name, number+1, withoutPath(err))
	if name == w.root {
		return err
	}
	return fmt.Errorf("%w; every file of the folder has to be part of the catalog, except those that %s names", err, indexIgnore)
}

// withoutPath is an error of the file system without its path, which the message names already.
func withoutPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// open reads a file from an offset, and counts its bytes once.
func (w *walk) open(name string, from int64, read func(io.Reader) (int64, error)) (valid int64, err error) {
	file, err := w.files.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if from > 0 {
		if _, err := io.CopyN(io.Discard, file, from); err != nil {
			return 0, err
		}
		w.read = max(0, w.read-from)
	}
	return read(&counted{from: file, walk: w})
}

// counted stops where the files are larger than they may be altogether.
type counted struct {
	from io.Reader
	walk *walk
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.walk.read += int64(n)
	if c.walk.read > c.walk.limits.Bytes {
		return n, &LimitError{What: "bytes of all files", Most: c.walk.limits.Bytes}
	}
	return n, err
}

// ofPackage are the schemas that mean nothing without a package.
var ofPackage = map[string]bool{
	schemaPackage: true, catalog.SchemaChannel: true, catalog.SchemaBundle: true, catalog.SchemaDeprecations: true,
}

// newBlob reads which package a blob is about.
func newBlob(name string, number int, text []byte) Blob {
	blob := Blob{Path: name, Number: number, JSON: text}
	var head struct{ Schema, Package, Name string }
	blob.Problem = lean.Unmarshal(text, &head)
	blob.Schema = head.Schema
	blob.Package = head.Package
	blob.Name = head.Name
	if blob.Problem == nil && blob.Schema == "" {
		blob.Problem = errors.New("the field schema is missing")
	}
	if blob.Schema == schemaPackage {
		blob.Package = blob.Name
	}
	if blob.Problem == nil && blob.Package == "" && ofPackage[blob.Schema] {
		blob.Problem = fmt.Errorf("the name of the package of this %s is missing", blob.Schema)
	}
	return blob
}
