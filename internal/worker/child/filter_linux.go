// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data. Arguments are of 64 bits, both architectures are little endian.
const (
	offsetNumber       = 0
	offsetArchitecture = 4
	offsetArguments    = 16
)

// allowedCalls are the system calls of Go's runtime, for reading and writing open files,
// and for the clock. Everything else is refused with EPERM: sockets, programs, opening
// files, other processes, changes of limits.
var allowedCalls = append([]uint32{
	// Files that are open.
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_RECVMSG, unix.SYS_CLOSE, unix.SYS_FSTAT,
	// Memory.
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_BRK,
	// Threads, signals, waiting.
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETPID, unix.SYS_GETTID,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_RESTART_SYSCALL,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	// Clock, random numbers, used resources.
	unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM, unix.SYS_GETRUSAGE,
}, architectureCalls...)

// filterSystemCalls installs the filter for all threads. It needs no_new_privs, and passes
// that on to the other threads.
func filterSystemCalls() error {
	program := filterProgram(uint32(unix.Getpid()))                           //nolint:gosec // a process id is positive
	encoded := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]} //nolint:gosec // far below
	thread, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&encoded))) //nolint:gosec // the kernel's calling convention
	if errno != 0 {
		return fmt.Errorf("installing the seccomp filter: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("installing the seccomp filter: thread %d has another one", thread)
	}
	return nil
}

// filterProgram is the filter for the process with the given id.
func filterProgram(self uint32) []unix.SockFilter {
	f := filter{}
	f.load(offsetArchitecture)
	f.unlessEqual(architecture, unix.SECCOMP_RET_KILL_PROCESS)
	f.load(offsetNumber)
	f.refuseOtherABI()
	for _, call := range allowedCalls {
		f.ifEqual(call, unix.SECCOMP_RET_ALLOW)
	}
	// The C library and Go fall back to clone, and the filter can read its flags.
	f.ifEqual(unix.SYS_CLONE3, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS))
	f.argument(unix.SYS_CLONE, 0, bitsSet, unix.CLONE_THREAD)
	f.argument(unix.SYS_MMAP, 2, bitsClear, unix.PROT_EXEC)
	f.argument(unix.SYS_MPROTECT, 2, bitsClear, unix.PROT_EXEC)
	f.argument(unix.SYS_TGKILL, 0, equal, self)
	f.argument(unix.SYS_KILL, 0, equal, self)
	f.argument(unix.SYS_FCNTL, 1, equal, unix.F_GETFL)
	f.argument(unix.SYS_PRCTL, 0, equal, unix.PR_SET_VMA)
	f.answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	return f.program
}

// filter writes a program of classic BPF.
type filter struct{ program []unix.SockFilter }

func (f *filter) add(code uint16, jumpTrue, jumpFalse uint8, value uint32) {
	f.program = append(f.program, unix.SockFilter{Code: code, Jt: jumpTrue, Jf: jumpFalse, K: value})
}

// load puts 32 bits of the call into the register.
func (f *filter) load(offset uint32) { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }

func (f *filter) answer(value uint32) { f.add(unix.BPF_RET|unix.BPF_K, 0, 0, value) }

func (f *filter) ifEqual(value, answer uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, value)
	f.answer(answer)
}

func (f *filter) unlessEqual(value, answer uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, value)
	f.answer(answer)
}

// condition is a condition on the lower 32 bits of an argument.
type condition int

const (
	equal condition = iota
	bitsSet
	bitsClear
)

// argument allows a call if its argument fulfils the condition. The number of the call is
// in the register, before and after.
func (f *filter) argument(call, index uint32, c condition, value uint32) {
	code, pass, fail := uint16(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K), uint8(0), uint8(1)
	if c != equal {
		code = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	}
	if c == bitsClear {
		pass, fail = 1, 0
	}
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 4, call)
	f.load(offsetArguments + 8*index)
	f.add(code, pass, fail, value)
	f.answer(unix.SECCOMP_RET_ALLOW)
	f.load(offsetNumber)
}
