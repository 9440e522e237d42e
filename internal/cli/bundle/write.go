// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// CheckFree checks that a folder does not exist, or is empty.
func CheckFree(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if parent := filepath.Dir(filepath.Clean(dir)); !isDir(parent) {
			return fmt.Errorf("there is no folder %s to write into: create it, or name another one", parent)
		}
		return nil
	case err != nil:
		return fmt.Errorf("reading the folder %s: %w", dir, kit.WithoutPath(err))
	case len(entries) > 0:
		return fmt.Errorf("the folder %s is not empty: name another one", dir)
	}
	return nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// WriteFolder writes files that were fetched into a new or empty folder, and returns how many there are. They are written
// into a temporary folder beside it, which is renamed in the end: on failure, nothing is left behind.
func WriteFolder(ctx context.Context, dir string, files fs.FS) (count int, err error) {
	beside, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".satchel-")
	if err != nil {
		return 0, fmt.Errorf("writing beside %s: %w", dir, kit.WithoutPath(err))
	}
	defer os.RemoveAll(beside) //nolint:errcheck // if that fails, the name of the folder says that it is temporary
	fresh := filepath.Join(beside, "files")
	if err := os.Mkdir(fresh, 0o755); err != nil { //nolint:gosec // the user's own files, as umask has them
		return 0, fmt.Errorf("writing beside %s: %w", dir, kit.WithoutPath(err))
	}
	count, err = writeOut(ctx, fresh, files)
	if err == nil {
		if err = os.Remove(dir); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return 0, fmt.Errorf("writing the folder %s: %w", dir, kit.WithoutPath(err))
	}
	return count, nil
}

// writeOut writes a tree that was fetched into an empty folder, with the modes that the user's files have.
func writeOut(ctx context.Context, dir string, files fs.FS) (count int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case name == ".":
			return nil
		case entry.IsDir():
			return root.Mkdir(name, 0o755)
		}
		count++
		return copyOut(root, files, name)
	})
	return count, fetch.Describe(err, "copying the files")
}

// copyOut writes one file.
func copyOut(root *os.Root, files fs.FS, name string) (err error) {
	from, err := files.Open(name)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read from
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
