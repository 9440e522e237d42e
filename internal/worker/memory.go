// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// idleMemory is the memory of the spare process and of idle ones, beside that of Workers.
	idleMemory = 96 * mebibyte
	// spareMemory is the part of it for the spare process: a fresh one has 8 to 10 MiB of its own.
	spareMemory = 16 * mebibyte
	// maxIdle is how many processes wait for another job of their namespace.
	maxIdle = 8
)

// checkMemory refuses more memory for this process and its workers than the container has.
// A process without GOMEMLIMIT, such as the CLI, is not checked.
func checkMemory(o *Options, container int64) error {
	own := debug.SetMemoryLimit(-1)
	if own == math.MaxInt64 {
		return nil
	}
	needed := own + int64(o.Workers)*o.Memory
	if o.Spare {
		needed += idleMemory
	}
	if needed <= container {
		return nil
	}
	return fmt.Errorf("the container's memory limit is %s; this process (GOMEMLIMIT %s), %d workers of %s and idle ones may need %s: raise the limit, or lower --workers or --worker-memory-mib",
		inMebibytes(container), inMebibytes(own), o.Workers, inMebibytes(o.Memory), inMebibytes(needed))
}

// killCounter tells kills by the kernel from those by others.
type killCounter struct {
	read func() uint64 // the kernel's counter

	mu    sync.Mutex
	known uint64
}

func newKillCounter(read func() uint64) *killCounter {
	return &killCounter{read: read, known: read()}
}

// rose tells whether the kernel killed a process of this container since the last call, because memory was short.
func (c *killCounter) rose() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known
	c.known = c.read()
	return c.known > before
}

// checkFile refuses a file that a worker could write to.
func checkFile(file *os.File) error {
	if file == nil {
		return nil
	}
	connection, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var flags int
	var failed error
	err = connection.Control(func(fd uintptr) { flags, failed = unix.FcntlInt(fd, unix.F_GETFL, 0) })
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("checking the file of a job: %w", err)
	}
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		return fmt.Errorf("the file %s of a job is not opened for reading only", file.Name())
	}
	return nil
}
