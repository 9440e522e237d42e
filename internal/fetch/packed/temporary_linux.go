// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// nameless creates a file that never has a name, so that nothing of it stays even if the process is killed at once. Some file
// systems cannot do that.
func nameless(dir string) (write, read *os.File, err error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a file without a name in %s: %w", dir, err)
	}
	write = os.NewFile(uintptr(fd), "packed")
	read, err = os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, nil, errors.Join(err, write.Close())
	}
	return write, read, nil
}
