// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRun does ordinary jobs in one process.
func TestRun(t *testing.T) {
	p := newPool(t, testOptions())
	big := strings.Repeat("x", 900_000)
	for _, data := range []string{"", "hello", big} {
		if got := mustRun(t, p, "echo", data); got != data {
			t.Errorf("echo returned %d bytes for %d", len(got), len(data))
		}
	}
	first := pidOf(t, p, "a")
	if second := pidOf(t, p, "a"); second != first {
		t.Error("the second job of a namespace got another process")
	}
	if other := pidOf(t, p, "b"); other == first {
		t.Error("a process that has served a namespace served another one")
	}
}

// TestKeepsLightProcess: namespaces that have used much CPU time take the processes of each
// other, and neither that of another namespace nor the spare one.
func TestKeepsLightProcess(t *testing.T) {
	o := testOptions()
	o.Workers = 1
	o.NamespaceCPU, o.NamespaceWindow = time.Minute, 1000*time.Hour // nothing comes back
	p := newPool(t, o)
	light := pidOf(t, p, "light")
	next := 0
	eventually(t, "the next spare process has started", func() bool {
		next = p.count(func() int {
			if p.spare == nil {
				return 0
			}
			return p.spare.handle.Pid
		})
		return next != 0
	})
	heavy := []string{"heavy-1", "heavy-2", "heavy-3"}
	p.count(func() int {
		for _, namespace := range heavy {
			p.budgets.charge(namespace, time.Second, p.now())
		}
		return 0
	})
	for _, namespace := range heavy {
		before := p.count(func() int { return int(p.budgets.spent(namespace, p.now())) })
		first := pidOf(t, p, namespace)
		if used := p.count(func() int { return int(p.budgets.spent(namespace, p.now())) }) - before; used < int(time.Millisecond) {
			t.Errorf("the start of a process was not charged: %s", time.Duration(used))
		}
		if _, err := p.Run(t.Context(), Request{Namespace: namespace, Kind: "allocate", Data: []byte("60 keep")}); err != nil {
			t.Fatal(err)
		}
		if again := pidOf(t, p, namespace); again != first {
			t.Error("a process that may be kept was replaced")
		}
	}
	if after := pidOf(t, p, "light"); after != light {
		t.Error("the process of a light namespace was ended for a heavy one")
	}
	if after := pidOf(t, p, "another"); after != next {
		t.Error("a light namespace did not get the spare process: a heavy one took it")
	}
	held := p.count(func() (held int) {
		for _, w := range p.idle {
			held += int(w.own)
		}
		return held
	})
	if held > idleMemory+int(o.Memory) {
		t.Errorf("idle processes hold %s", inMebibytes(int64(held)))
	}
	if n := p.count(func() int { return len(p.idle) }); n != 3 { // light, another, and one that holds 60 MiB
		t.Errorf("%d processes are idle", n)
	}
}

// TestFewAreIdle bounds the number of idle processes: that of the namespace that came first is ended.
func TestFewAreIdle(t *testing.T) {
	p := newPool(t, testOptions())
	var pids []int
	for i := range maxIdle + 2 {
		pids = append(pids, pidOf(t, p, fmt.Sprint("namespace-", i)))
	}
	if n := p.count(func() int { return len(p.idle) }); n != maxIdle+1 { // and the one of the last job
		t.Errorf("%d processes are idle", n)
	}
	if again := pidOf(t, p, "namespace-1"); again != pids[1] {
		t.Error("the process of the second namespace was ended")
	}
	if again := pidOf(t, p, "namespace-0"); again == pids[0] {
		t.Error("the process of the first namespace was not ended")
	}
}

// TestRunFile passes a file by its descriptor.
func TestRunFile(t *testing.T) {
	p := newPool(t, testOptions())
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for range 50 { // more often than a worker may have descriptors
		got, err := p.Run(t.Context(), Request{Namespace: "a", Kind: "file", Data: []byte("x"), File: file})
		if err != nil || string(got) != "content" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	writable, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writable.Close()
	if _, err := p.Run(t.Context(), Request{Namespace: "a", Kind: "file", File: writable}); err == nil {
		t.Error("a file that can be written was accepted")
	}
}

// TestLimits exceeds each limit; the pool goes on in another process.
func TestLimits(t *testing.T) {
	o := testOptions()
	o.Wall = 20 * time.Second
	p := newPool(t, o)
	cases := map[string]struct{ reason, kind, data, want string }{
		"CPU":         {"M25: the signal ends the process", "spin", "", "cpu 2s"},
		"memory":      {"Go's runtime exits when no memory can be mapped", "allocate", "1000", "memory 256 MiB"},
		"stack":       {"recursion without end takes memory", "recurse", "", "memory 256 MiB"},
		"output":      {"a result is held by the controller", "output", "1048577", "output 1 MiB"},
		"most output": {"the limit itself is allowed", "output", "1048576", "<nil>"},
		"time":        {"a job that waits uses no CPU", "sleep", "1h", "time 20s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, p, tc.kind, tc.data)
			if got := limitOf(err); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
			mustRun(t, p, "echo", "still there")
		})
	}
}

// TestErrors distinguishes a handler's error from a crash.
func TestErrors(t *testing.T) {
	p := newPool(t, testOptions())
	if _, err := run(t, p, "error", "not now"); !errors.As(err, new(*JobError)) || !strings.Contains(err.Error(), "not now") {
		t.Errorf("a handler's error: got %v", err)
	}
	if _, err := run(t, p, "unknown", ""); !errors.As(err, new(*JobError)) {
		t.Errorf("a kind without a handler: got %v", err)
	}
	for _, kind := range []string{"panic", "index", "exit"} {
		_, err := run(t, p, kind, "secret value")
		if !errors.As(err, new(*CrashError)) {
			t.Errorf("%s: got %v, want a CrashError", kind, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells what the process printed: %v", kind, err)
		}
	}
	mustRun(t, p, "echo", "still there")
}

// TestCancel ends a running job's process, and a waiting job costs nothing.
func TestCancel(t *testing.T) {
	p := newPool(t, testOptions())
	before := pidOf(t, p, "a")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := p.Run(ctx, Request{Namespace: "a", Kind: "sleep", Data: []byte("1h")})
		done <- err
	}()
	eventually(t, "the job runs", func() bool { return p.count(func() int { return len(p.using) }) == 1 })

	waiting, give := context.WithCancel(t.Context())
	go func() {
		_, err := p.Run(waiting, Request{Namespace: "a", Kind: "echo"})
		done <- err
	}()
	eventually(t, "the second job waits", func() bool { return p.count(func() int { return len(p.queue.waiting["a"]) }) == 1 })
	give()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the waiting job: got %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the running job: got %v", err)
	}
	if after := pidOf(t, p, "a"); after == before {
		t.Error("the process of the cancelled job does another one")
	}
}

// count reads the pool's state.
func (p *Pool) count(f func() int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f()
}

// TestClose ends running and waiting jobs.
func TestClose(t *testing.T) {
	p, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 3 {
		go func() {
			_, err := p.Run(t.Context(), Request{Namespace: "a", Kind: "sleep", Data: []byte("1h")})
			done <- err
		}()
	}
	eventually(t, "one job runs and two wait", func() bool {
		return p.count(func() int { return len(p.using)*10 + len(p.queue.waiting["a"]) }) == 12
	})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for range 3 {
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
	if _, err := p.Run(t.Context(), Request{Namespace: "a", Kind: "echo"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}

// TestBudget refuses jobs of a namespace that has used its CPU time.
func TestBudget(t *testing.T) {
	o := testOptions()
	o.NamespaceCPU, o.NamespaceWindow = 2*time.Second, time.Hour
	p := newPool(t, o)
	if _, err := run(t, p, "spin", ""); limitOf(err) != "cpu 2s" {
		t.Fatalf("the bomb: got %v", err)
	}
	_, err := run(t, p, "echo", "")
	var budget *BudgetError
	if !errors.As(err, &budget) || budget.RetryAfter < time.Minute || budget.RetryAfter > time.Hour {
		t.Errorf("after the bomb: got %v", err)
	}
	if _, err := p.Run(t.Context(), Request{Namespace: "b", Kind: "echo"}); err != nil {
		t.Errorf("another namespace: got %v", err)
	}
}

// TestRetire replaces a process that holds too much memory.
func TestRetire(t *testing.T) {
	p := newPool(t, testOptions())
	before := pidOf(t, p, "a")
	mustRun(t, p, "allocate", "140 keep")
	if after := pidOf(t, p, "a"); after == before {
		t.Error("a process at three quarters of its memory does another job")
	}
}

// F45: a process cannot be started: EAGAIN, ENOMEM, EMFILE.
func TestF45StartFails(t *testing.T) {
	o := testOptions()
	o.Spare = false
	p := newPool(t, o)
	start := p.start
	for _, refused := range shortages {
		p.start = func(*os.ProcAttr) (*os.Process, error) { return nil, refused }
		if _, err := run(t, p, "echo", ""); !errors.Is(err, ErrUnavailable) || !errors.Is(err, refused) {
			t.Errorf("got %v, want ErrUnavailable because of %v", err, refused)
		}
	}
	p.start = start
	mustRun(t, p, "echo", "works again")
}

// TestOptions refuses unusable options.
func TestOptions(t *testing.T) {
	cases := map[string]func(*Options){
		"no worker":        func(o *Options) { o.Workers = 0 },
		"no CPU":           func(o *Options) { o.CPU = time.Millisecond },
		"little memory":    func(o *Options) { o.Memory = 64 * mebibyte },
		"no output":        func(o *Options) { o.Output = 0 },
		"endless output":   func(o *Options) { o.Output = 1 << 40 },
		"no time":          func(o *Options) { o.Wall = 0 },
		"window too short": func(o *Options) { o.NamespaceWindow = time.Second },
	}
	for name, change := range cases {
		o := DefaultOptions()
		change(&o)
		if p, err := New(o); err == nil {
			_ = p.Close()
			t.Errorf("%s was accepted", name)
		}
	}
}

// TestErrorTexts compares the messages of the errors.
func TestErrorTexts(t *testing.T) {
	o := DefaultOptions()
	var all bytes.Buffer
	for _, e := range []end{endCPU, endMemory, endOutput, endTime} {
		all.WriteString(limitError(e, &o).Error() + "\n")
	}
	all.WriteString((&BudgetError{Budget: time.Minute, Window: 10 * time.Minute, RetryAfter: 90 * time.Second}).Error() + "\n")
	want := `exceeded the limit of 20s CPU time
exceeded the limit of 512 MiB memory
exceeded the limit of 64 MiB output
exceeded the limit of 5m0s time
the namespace has used its 1m0s of CPU time in 10m0s; the next attempt is possible in 1m30s
`
	if all.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &all, want)
	}
}
