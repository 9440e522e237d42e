// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"testing/fstest"
)

// subtree returns the files of one folder, under their full paths.
func subtree(files fs.FS, folder string) (fs.FS, error) {
	part := fstest.MapFS{}
	err := copyTree(part, files, folder, folder)
	return part, err
}
