// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

// usingPid returns the process that runs a job now, or 0.
func (p *Pool) usingPid() int {
	return p.count(func() int {
		for _, u := range p.using {
			return u.process.handle.Pid
		}
		return 0
	})
}

// strike sends a signal to the worker at a moment of each of the first n attempts of a job.
func strike(t *testing.T, p *Pool, signal syscall.Signal, n int) (string, error) {
	t.Helper()
	var struck sync.WaitGroup
	defer struck.Wait()
	struck.Go(func() {
		last := 0
		for range n {
			eventually(t, "an attempt begins", func() bool { pid := p.usingPid(); return pid != 0 && pid != last })
			last = p.usingPid()
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			_ = syscall.Kill(last, signal)
		}
	})
	long := "100ms"
	if n > 1 { // no attempt ends by itself
		long = "1m"
	}
	result, err := run(t, p, "sleep", long)
	return string(result), err
}

// TestF45Signals ends or stops the worker at any moment of a job: the job is tried again
// once, then fails clearly; the pool goes on.
func TestF45Signals(t *testing.T) {
	o := testOptions()
	o.Workers = 1
	p := newPool(t, o)
	for range 10 {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGSEGV} {
			if _, err := strike(t, p, signal, 1); err != nil {
				t.Errorf("one %v: %v", signal, err)
			}
		}
	}
	if _, err := strike(t, p, syscall.SIGKILL, 2); !errors.As(err, new(*CrashError)) {
		t.Errorf("killed twice by another process: got %v", err)
	}
	var kills atomic.Uint64
	p.kills = newKillCounter(func() uint64 { return kills.Add(1) })
	if _, err := strike(t, p, syscall.SIGKILL, 2); limitOf(err) != "memory 256 MiB" {
		t.Errorf("killed twice by the kernel, because memory was short: got %v", err)
	}
	if _, err := strike(t, p, syscall.SIGSTOP, 2); !errors.As(err, new(*CrashError)) {
		t.Errorf("stopped twice: got %v", err)
	}
	mustRun(t, p, "echo", "still there")
}

// TestF45Idle ends and stops idle workers, the spare one too: the next job succeeds.
func TestF45Idle(t *testing.T) {
	p := newPool(t, testOptions())
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for range 5 {
			mustRun(t, p, "echo", "")
			p.count(func() int {
				for _, w := range p.processes() {
					_ = syscall.Kill(w.handle.Pid, signal)
				}
				return 0
			})
			mustRun(t, p, "echo", "")
		}
	}
}

// TestF45Garbage lets a worker send an invalid answer, and close its socket.
func TestF45Garbage(t *testing.T) {
	p := newPool(t, testOptions())
	header := protocol.Header{Kind: protocol.MessageResult, Job: 1, Length: 1 << 40}.Bytes()
	for name, garbage := range map[string]string{"noise": strings.Repeat("x", 100), "length": string(header)} {
		if _, err := run(t, p, "garbage", garbage); !errors.As(err, new(*CrashError)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := run(t, p, "close", ""); !errors.As(err, new(*CrashError)) {
		t.Errorf("closed socket: got %v", err)
	}
	mustRun(t, p, "echo", "still there")
}

// children are the processes that this one has started and not waited for.
func children(t *testing.T) []string {
	t.Helper()
	var found []string
	for pid, stat := range processes(t) {
		if stat.parent == os.Getpid() {
			found = append(found, fmt.Sprintf("%d (%s)", pid, stat.state))
		}
	}
	return found
}

type processState struct {
	parent int
	state  string
}

func processes(t *testing.T) map[int]processState {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]processState{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var pid int
		var p processState
		before, after, _ := strings.Cut(string(content), ") ")
		if _, err := fmt.Sscan(before, &pid); err == nil {
			if _, err := fmt.Sscan(after, &p.state, &p.parent); err == nil {
				all[pid] = p
			}
		}
	}
	return all
}

// TestI6Baseline: no process, descriptor or goroutine is left, however jobs ended.
func TestI6Baseline(t *testing.T) {
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	mustRunOnce(t) // what Go's runtime opens once
	fds, routines := descriptors(), runtime.NumGoroutine()
	for range 3 {
		mustRunOnce(t)
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= routines })
	if now := descriptors(); now > fds {
		t.Errorf("%d descriptors, %d before", now, fds)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// mustRunOnce makes a pool, does jobs of each end in it and closes it while one runs.
func mustRunOnce(t *testing.T) {
	t.Helper()
	p, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, p, "echo", "")
	for _, kind := range []string{"panic", "exit", "allocate", "error"} {
		_, _ = run(t, p, kind, "2000")
	}
	start := p.start
	p.start = func(*os.ProcAttr) (*os.Process, error) { return nil, syscall.EAGAIN }
	_, _ = p.Run(t.Context(), Request{Namespace: "b", Kind: "echo"})
	p.start = start
	var jobs sync.WaitGroup
	jobs.Go(func() { _, _ = run(t, p, "sleep", "1h") })
	eventually(t, "the job runs", func() bool { return p.usingPid() != 0 })
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	jobs.Wait()
}

// TestManyJobs: a process is replaced after 1,000 jobs, and does not grow before.
func TestManyJobs(t *testing.T) {
	o := testOptions()
	p := newPool(t, o)
	first := pidOf(t, p, "a")
	_, fresh, _ := memoryOf(first)
	for range maxJobs - 2 {
		mustRun(t, p, "allocate", "1")
	}
	if pid := pidOf(t, p, "a"); pid != first {
		t.Fatal("the process was replaced before its time")
	}
	eventually(t, "the process is replaced", func() bool { return pidOf(t, p, "a") != first })
	t.Logf("resident memory of a worker: %d KiB before, after %d jobs of 1 MiB it was replaced", fresh/1024, maxJobs)
}
