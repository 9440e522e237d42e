// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"io/fs"
	"syscall"
	"time"
)

// Stamp identifies the state of a file. The change time cannot be set back by a program, so that an edit of the same size
// with a restored modification time is seen too.
type Stamp struct {
	device, inode uint64
	Size          int64
	Modified      time.Time
	Changed       time.Time
}

// StampOf is the state that a file is in.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), Modified: info.ModTime(), Changed: info.ModTime()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.device, s.inode = uint64(stat.Dev), stat.Ino                     //nolint:unconvert // Dev is 32 bits wide on some architectures
		s.Changed = time.Unix(int64(stat.Ctim.Sec), int64(stat.Ctim.Nsec)) //nolint:unconvert // 32 bits wide on some architectures
	}
	return s
}
