// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

const receiveFlags = 0

// confine makes the process end when its parent ends or its CPU time is used up. There is
// no sandbox on this system: it runs the CLI, for the user who called it.
func confine(protocol.Limits) error {
	exceeded := make(chan os.Signal, 1)
	signal.Notify(exceeded, syscall.SIGXCPU)
	go func() {
		<-exceeded
		os.Exit(protocol.ExitCPU) //nolint:forbidigo // a worker process ends here
	}()
	go func() {
		_, _ = socket(protocol.LifeFD).Read(make([]byte, 1))
		os.Exit(0) //nolint:forbidigo // a worker process ends here
	}()
	return nil
}

// raiseOwnCPULimit gives the process the CPU time of one more job.
func raiseOwnCPULimit(l protocol.Limits) {
	var usage unix.Rusage
	var limit unix.Rlimit
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil || unix.Getrlimit(unix.RLIMIT_CPU, &limit) != nil {
		return
	}
	used := uint64(max(usage.Utime.Sec+usage.Stime.Sec+1, 0)) //nolint:gosec // not negative
	limit.Cur = min(used+l.CPU, limit.Max)
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &limit)
}
