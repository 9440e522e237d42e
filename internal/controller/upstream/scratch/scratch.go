// SPDX-License-Identifier: Apache-2.0

// Package scratch holds the temporary folders and files into which content is unpacked before it is stored.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
)

// Prepare creates the folder for temporary folders, and removes leftovers of a killed process.
func Prepare(dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return fmt.Errorf("preparing the scratch folder: %w: check --storage-path", err)
	}
	return nil
}

// NewTree creates a tree within the given limits in a temporary folder of dir, with a name like "fetch-*".
// Call remove when it is not needed any more.
func NewTree(dir, pattern string, limits fetch.Limits) (tree *fetch.Tree, remove func(), err error) {
	folder, err := os.MkdirTemp(dir, pattern)
	if err != nil {
		return nil, nil, &volume.StorageError{Op: "creating a temporary folder", Err: err}
	}
	tree, err = fetch.NewTree(folder, limits)
	if err != nil {
		_ = os.RemoveAll(folder) // leftover files are removed at the next start
		return nil, nil, &volume.StorageError{Op: "preparing a temporary folder", Err: err}
	}
	return tree, func() {
		_ = tree.Close() // read-only by then
		_ = os.RemoveAll(folder)
	}, nil
}

// NewPackedTree is NewTree for content that needs no folder for intermediate files: the tree keeps its files in one file
// without a name. That saves most of the work of a small one.
func NewPackedTree(dir, pattern string, limits fetch.Limits) (tree *fetch.Tree, remove func(), err error) {
	write, read, err := packed.Temporary(dir, pattern)
	if err != nil {
		return nil, nil, &volume.StorageError{Op: "creating a temporary file", Err: err}
	}
	tree = fetch.NewPackedTree(write, read, limits)
	return tree, func() {
		_ = errors.Join(write.Close(), tree.Close()) // read-only by then
	}, nil
}

// UnpackingError distinguishes a full or broken scratch volume from content or an upstream that is at fault.
func UnpackingError(err error) error {
	var path *fs.PathError
	if fetch.ReasonOf(err) == "" && errors.As(err, &path) {
		return &volume.StorageError{Op: "unpacking", Err: err}
	}
	return err
}
