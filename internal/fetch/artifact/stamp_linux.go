// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"io/fs"
	"syscall"
	"time"
)

// stamp identifies the state of a file. The change time cannot be set back by a program, so that an edit of the same size
// with a restored modification time is seen too.
type stamp struct {
	device, inode uint64
	size          int64
	modified      time.Time
	changed       time.Time
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), modified: info.ModTime(), changed: info.ModTime()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.device, s.inode = uint64(stat.Dev), stat.Ino                     //nolint:unconvert // Dev is 32 bits wide on some architectures
		s.changed = time.Unix(int64(stat.Ctim.Sec), int64(stat.Ctim.Nsec)) //nolint:unconvert // 32 bits wide on some architectures
	}
	return s
}
