// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package volume

import (
	"io/fs"
	"time"
)

// Stamp identifies the state of a file by size and modification time, which is what every platform has.
type Stamp struct {
	Size     int64
	Modified time.Time
	Changed  time.Time
}

// StampOf is the state that a file is in.
func StampOf(info fs.FileInfo) Stamp {
	return Stamp{Size: info.Size(), Modified: info.ModTime(), Changed: info.ModTime()}
}
