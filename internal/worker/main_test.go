// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/worker/child"
)

func TestMain(m *testing.M) {
	handlers := map[string]child.Handler{
		"echo":     func(in child.Input) ([]byte, error) { return in.Data, nil },
		"pid":      func(child.Input) ([]byte, error) { return []byte(strconv.Itoa(os.Getpid())), nil },
		"spin":     spin,
		"allocate": allocate,
		"recurse":  func(child.Input) ([]byte, error) { return []byte(strconv.Itoa(recurse(0))), nil },
		"output":   output,
		"error":    func(in child.Input) ([]byte, error) { return nil, errors.New(string(in.Data)) },
		"panic":    func(in child.Input) ([]byte, error) { panic(string(in.Data)) }, //nolint:forbidigo // what libraries do
		"index":    func(in child.Input) ([]byte, error) { return in.Data[len(in.Data)+1:], nil },
		"exit":     func(child.Input) ([]byte, error) { os.Exit(7); return nil, nil },
		"sleep":    sleep,
		"file":     readFile,
		"threads":  manyThreads,
	}
	addSystemHandlers(handlers)
	child.Main(handlers)
	if len(os.Args) > 1 && os.Args[1] == controllerArgument {
		controllerMain()
	}
	os.Exit(m.Run())
}

// spin uses the CPU for the duration in its data, or for ever.
func spin(in child.Input) ([]byte, error) {
	length, _ := time.ParseDuration(string(in.Data))
	for began := time.Now(); length == 0 || time.Since(began) < length; {
		for range 1 << 20 {
		}
	}
	return nil, nil
}

var kept [][]byte

// allocate touches so many MiB as its data says, keeps them if asked to, and returns how
// many processors it sees.
func allocate(in child.Input) ([]byte, error) {
	amount, keep := strings.CutSuffix(string(in.Data), " keep")
	n, _ := strconv.Atoi(amount)
	blocks := make([][]byte, 0, n)
	for range n {
		blocks = append(blocks, bytes.Repeat([]byte{1}, mebibyte))
	}
	if keep {
		kept = append(kept, blocks...)
	}
	runtime.KeepAlive(blocks)
	return []byte(strconv.Itoa(runtime.GOMAXPROCS(0))), nil
}

func recurse(depth int) int {
	if depth < 0 {
		return 0
	}
	var room [1024]byte
	room[depth%1024] = 1
	return recurse(depth+1) + int(room[(depth+1)%1024])
}

func output(in child.Input) ([]byte, error) {
	n, err := strconv.Atoi(string(in.Data))
	return make([]byte, n), err
}

func sleep(in child.Input) ([]byte, error) {
	length, err := time.ParseDuration(string(in.Data))
	time.Sleep(length)
	return nil, err
}

// readFile reads the job's file at offsets, and then tries to write to it.
func readFile(in child.Input) ([]byte, error) {
	if in.File == nil {
		return nil, errors.New("no file")
	}
	content, err := io.ReadAll(io.NewSectionReader(in.File, 0, 1<<20))
	if err != nil {
		return nil, err
	}
	if _, err := in.File.WriteAt([]byte("x"), 0); err == nil {
		return nil, errors.New("the file could be written")
	}
	return content, nil
}

// manyThreads blocks in system calls of as many threads as its data says.
func manyThreads(in child.Input) ([]byte, error) {
	n, err := strconv.Atoi(string(in.Data))
	ready, done := make(chan struct{}), make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready <- struct{}{}
			<-done
		}()
	}
	for range n {
		<-ready
	}
	close(done)
	return in.Data, err
}

// testOptions are the defaults with small limits.
func testOptions() Options {
	o := DefaultOptions()
	o.CPU = 2 * time.Second
	o.Memory = 256 * mebibyte
	o.Output = mebibyte
	o.NamespaceCPU = 0
	return o
}

// newPool makes a pool that is closed at the end of the test.
func newPool(t testing.TB, o Options) *Pool {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatalf("making a pool: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
	})
	return p
}

// run does a job for the namespace "a".
func run(t testing.TB, p *Pool, kind, data string) ([]byte, error) {
	t.Helper()
	return p.Run(t.Context(), Request{Namespace: "a", Kind: kind, Data: []byte(data)})
}

// mustRun wants a result.
func mustRun(t testing.TB, p *Pool, kind, data string) string {
	t.Helper()
	result, err := run(t, p, kind, data)
	if err != nil {
		t.Fatalf("job %s %s: %v", kind, data, err)
	}
	return string(result)
}

// eventually polls a condition for a minute.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// pidOf returns the process that serves a namespace.
func pidOf(t testing.TB, p *Pool, namespace string) int {
	t.Helper()
	answer, err := p.Run(context.Background(), Request{Namespace: namespace, Kind: "pid"})
	if err != nil {
		t.Fatalf("asking a worker for its process id: %v", err)
	}
	pid, err := strconv.Atoi(string(answer))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func limitOf(err error) string {
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit.Limit + " " + limit.Budget
	}
	return fmt.Sprint(err)
}
