// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// niceness of workers: controllers have priority when CPUs are busy, three quarters of a CPU beside one worker. With 10, as before,
// conversions nearly stopped on a busy node (ADR 19).
const niceness = 5

// executable is this binary, even if its file was replaced.
func executable() string { return "/proc/self/exe" }

// lowerPriority sets the nice value of the calling thread, which its children inherit.
func lowerPriority() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness) }

// attributes make a child end with the thread that started it. Workers have a process
// group of their own, so they do not receive the terminal signals of the CLI.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// awaitStop returns when the process has ended, or with true when it was stopped.
func awaitStop(pid int) bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			const stopped = 5 // CLD_STOPPED
			return err == nil && info.Code == stopped
		}
	}
}

func socketPair() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// lifePipe is not needed: Pdeathsig does more.
func lifePipe() (ours, theirs *os.File, err error) { return nil, nil, nil }

// closeOnExec marks each open descriptor but stdin, stdout and stderr. Old kernels and
// container runtimes have no close_range.
func closeOnExec() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("listing the open descriptors: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// cpuTime is the CPU time of a process that was not waited for yet.
func cpuTime(pid int) time.Duration {
	const scheduler = 2 // CPUCLOCK_SCHED of a process, see clock_getcpuclockid(3)
	var now unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|scheduler), &now) != nil { //nolint:gosec // process ids have 22 bits
		return 0
	}
	return time.Duration(now.Nano())
}

// raiseCPULimit sets the CPU limit of a process to the used time plus more. The kernel
// counts whole seconds.
func raiseCPULimit(pid int, used, more time.Duration) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &limit); err != nil {
		return err
	}
	const second = time.Second
	limit.Cur = min(uint64((used+second-1)/second+(more+second-1)/second), limit.Max) //nolint:gosec // not negative
	return unix.Prlimit(pid, unix.RLIMIT_CPU, &limit, nil)
}

// memoryOf is the memory of a process, in bytes: what it mapped for itself, what is resident, and what of that is its own.
func memoryOf(pid int) (mapped, resident, own int64) {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, 0, 0
	}
	var total, inMemory, shared, text, unused, data int64
	if _, err := fmt.Sscan(string(statm), &total, &inMemory, &shared, &text, &unused, &data); err != nil {
		return 0, 0, 0
	}
	page := int64(os.Getpagesize())
	return data * page, inMemory * page, (inMemory - shared) * page
}
