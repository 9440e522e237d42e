// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// root is the folder that the library sees the bundle in; failure removes it from messages.
const root = "/satchel-bundle"

// bundle is the file system that the library builds from: the files that were checked, and nothing else. What the library
// would write goes into the embedded file system, which is in memory and empty.
type bundle struct {
	filesys.FileSystem

	files fs.FS
	// checked are the files by name. A kustomization is read as it was checked, others (nil) are read from files.
	checked map[string][]byte
}

// within returns the name of a path in the bundle.
func within(name string) (string, bool) {
	clean := path.Clean(name)
	if clean == root {
		return ".", true
	}
	return strings.CutPrefix(clean, root+"/")
}

// ReadFile implements filesys.FileSystem.
func (b *bundle) ReadFile(name string) ([]byte, error) {
	inside, ok := within(name)
	content, checked := b.checked[inside]
	switch {
	case !ok || !checked:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case content != nil:
		return content, nil
	}
	return fs.ReadFile(b.files, inside)
}

// Exists implements filesys.FileSystem.
func (b *bundle) Exists(name string) bool {
	inside, ok := within(name)
	_, checked := b.checked[inside]
	return ok && checked || b.IsDir(name)
}

// IsDir implements filesys.FileSystem.
func (b *bundle) IsDir(name string) bool {
	inside, ok := within(name)
	if !ok {
		return false
	}
	info, err := fs.Lstat(b.files, inside)
	return err == nil && info.IsDir()
}

// CleanedAbs implements filesys.FileSystem.
func (b *bundle) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	clean := path.Clean(name)
	switch {
	case b.IsDir(clean):
		return filesys.ConfirmedDir(clean), "", nil
	case b.Exists(clean):
		return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
	}
	return "", "", fmt.Errorf("'%s' doesn't exist", name)
}
