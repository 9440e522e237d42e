// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package worker

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// executable is this binary.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func lowerPriority() {}

// attributes: workers have a process group of their own, so they do not receive the
// terminal signals of the CLI.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitStop is not needed: the time limit ends a stopped process.
func awaitStop(int) bool { return false }

func socketPair() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	return pair, err
}

// lifePipe is a pipe that the parent never writes to. The child ends when it is closed.
func lifePipe() (ours, theirs *os.File, err error) {
	theirs, ours, err = os.Pipe()
	return ours, theirs, err
}

// closeOnExec has nothing to do: the CLI is started with three descriptors.
func closeOnExec() error { return nil }

// cpuTime is not known while a process runs.
func cpuTime(int) time.Duration { return 0 }

// raiseCPULimit has nothing to do: the child does it.
func raiseCPULimit(int, time.Duration, time.Duration) error { return nil }

// memoryOf is not known.
func memoryOf(int) (mapped, resident, own int64) { return 0, 0, 0 }
