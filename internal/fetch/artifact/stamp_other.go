// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package artifact

import (
	"io/fs"
	"time"
)

// stamp identifies the state of a file by size and modification time, which is what every platform has.
type stamp struct {
	size     int64
	modified time.Time
	changed  time.Time
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{size: info.Size(), modified: info.ModTime(), changed: info.ModTime()}
}
