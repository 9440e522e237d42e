// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

const receiveFlags = unix.MSG_CMSG_CLOEXEC

// confine drops all privileges and resources that a job does not need. The nice value is inherited.
func confine(l protocol.Limits) error {
	runtime.LockOSThread() // one thread sets no_new_privs and the filter for all
	defer runtime.UnlockOSThread()
	if err := endBySIGXCPU(); err != nil {
		return fmt.Errorf("giving SIGXCPU its default action: %w", err)
	}
	if err := limitResources(l); err != nil {
		return err
	}
	// The kernel kills workers first when memory is short. Not all systems let a process write it.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	return filterSystemCalls()
}

// endBySIGXCPU gives the signal its default action, which ends the process. Go's runtime
// has a handler for it that drops the signal, and os/signal cannot remove that one.
func endBySIGXCPU() error {
	var defaultAction [4]uint64 // struct sigaction of the kernel, SIG_DFL
	const maskSize = 8
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGXCPU),
		uintptr(unsafe.Pointer(&defaultAction)), 0, maskSize, 0, 0) //nolint:gosec // the kernel's calling convention
	if errno != 0 {
		return errno
	}
	return nil
}

// limitResources limits memory and resources that no job needs. The parent limits the
// CPU time before each job.
func limitResources(l protocol.Limits) error {
	for _, bound := range []struct {
		resource int
		name     string
		value    uint64
	}{
		{unix.RLIMIT_DATA, "data", l.Memory},
		{unix.RLIMIT_CORE, "core", 0},
		{unix.RLIMIT_FSIZE, "file size", 0},
		{unix.RLIMIT_MEMLOCK, "locked memory", 0},
		{unix.RLIMIT_MSGQUEUE, "message queues", 0},
		{unix.RLIMIT_NOFILE, "open files", 16},
	} {
		if err := unix.Setrlimit(bound.resource, &unix.Rlimit{Cur: bound.value, Max: bound.value}); err != nil {
			return fmt.Errorf("limiting %s to %d: %w", bound.name, bound.value, err)
		}
	}
	return nil
}

// raiseOwnCPULimit has nothing to do: the parent does it, and the filter refuses it here.
func raiseOwnCPULimit(protocol.Limits) {}
