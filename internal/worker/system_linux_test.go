// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sort"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

var shortages = []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE}

// attempts are actions that the sandbox must refuse. Each returns nil if it succeeded.
var attempts = map[string]func() error{
	"socket":          func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err },
	"datagram socket": func() error { _, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0); return err },
	"netlink":         func() error { _, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0); return err },
	"socketpair":      func() error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
	"dial":            func() error { _, err := net.DialTimeout("tcp", "127.0.0.1:1", time.Second); return refusedOnly(err) },
	"connect": func() error {
		return refusedOnly(unix.Connect(protocol.SocketFD, &unix.SockaddrUnix{Name: "/run/x"}))
	},
	"sendmsg":         func() error { return unix.Sendmsg(protocol.SocketFD, []byte("x"), unix.UnixRights(0), nil, 0) },
	"exec":            func() error { return refusedOnly(unix.Exec("/proc/self/exe", []string{"x"}, nil)) },
	"run a program":   func() error { return refusedOnly(exec.Command("/proc/self/exe").Run()) },
	"fork":            func() error { return rawError(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0) },
	"clone3":          func() error { return rawError(unix.SYS_CLONE3, 0, 0, 0) },
	"ptrace":          func() error { return rawError(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0) },
	"read memory":     func() error { return rawError(unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid()), 0, 0) },
	"open to write":   func() error { _, err := os.Create("/tmp/satchel-worker-test"); return refusedOnly(err) },
	"open to read":    func() error { _, err := os.Open("/proc/self/status"); return err },
	"open null":       func() error { _, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); return err },
	"make a folder":   func() error { return os.Mkdir("/tmp/satchel-worker-test", 0o700) },
	"remove":          func() error { return refusedOnly(os.Remove("/tmp/satchel-worker-none")) },
	"stat":            func() error { _, err := os.Stat("/"); return err },
	"change folder":   func() error { return os.Chdir("/") },
	"memory file":     func() error { _, err := unix.MemfdCreate("x", 0); return err },
	"kill the parent": func() error { return syscall.Kill(os.Getppid(), 0) },
	"signal init":     func() error { return refusedOnly(syscall.Kill(1, 0)) },
	"raise limits":    func() error { return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30}) },
	"lower nice":      func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, 0) },
	"dumpable":        func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) },
	"new namespace":   func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"mount":           func() error { return refusedOnly(unix.Mount("none", "/tmp", "tmpfs", 0, "")) },
	"another user":    func() error { return rawError(unix.SYS_SETUID, 0, 0, 0) },
	"executable memory": func() error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	},
	"make executable": func() error {
		page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return fmt.Errorf("not refused, but failed: %w", err)
		}
		return unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC)
	},
	"bpf":         func() error { return rawError(unix.SYS_BPF, 0, 0, 0) },
	"io_uring":    func() error { return rawError(unix.SYS_IO_URING_SETUP, 1, 0, 0) },
	"key ring":    func() error { return rawError(unix.SYS_KEYCTL, 0, 0, 0) },
	"user faults": func() error { return rawError(unix.SYS_USERFAULTFD, 0, 0, 0) },
	"lock a file": func() error { return unix.Flock(0, unix.LOCK_SH) },
	"file flags":  func() error { _, err := unix.FcntlInt(0, unix.F_SETFL, unix.O_NONBLOCK); return err },
	"shared memory": func() error {
		return rawError(unix.SYS_SHMGET, 0, 4096, 0o1600)
	},
}

func rawError(call, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall6(call, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// refusedOnly accepts only errors of the sandbox, not those that occur without it.
func refusedOnly(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		return err
	}
	return nil
}

func addSystemHandlers(handlers map[string]child.Handler) {
	handlers["attempts"] = func(child.Input) ([]byte, error) {
		var possible []string
		for name, attempt := range attempts {
			if err := attempt(); err == nil || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS) {
				possible = append(possible, fmt.Sprintf("%s (%v)", name, err))
			}
		}
		sort.Strings(possible)
		return []byte(strings.Join(possible, "\n")), nil
	}
	handlers["environment"] = func(child.Input) ([]byte, error) {
		return []byte(strings.Join(append(os.Environ(), time.Local.String()), "\n")), nil
	}
	handlers["garbage"] = func(in child.Input) ([]byte, error) {
		_, err := unix.Write(protocol.SocketFD, in.Data)
		return nil, err
	}
	handlers["close"] = func(child.Input) ([]byte, error) {
		_ = unix.Close(protocol.SocketFD)
		select {}
	}
	handlers["signal"] = func(child.Input) ([]byte, error) {
		return nil, syscall.Kill(os.Getpid(), syscall.SIGXCPU)
	}
	handlers["other ABI"] = func(child.Input) ([]byte, error) {
		const x32 = 0x40000000
		_, _, errno := unix.RawSyscall(x32|unix.SYS_GETPID, 0, 0, 0)
		return nil, errno
	}
}
