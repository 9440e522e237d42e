// SPDX-License-Identifier: Apache-2.0

package clirig

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// Runner is the entry of a program: it runs a command line, and returns its exit code.
type Runner func(context.Context, kit.Program, []string) int

// Outcome is what a user sees of a command.
type Outcome struct {
	Code     int
	Out, Err string
}

// String shows all three.
func (o Outcome) String() string {
	return "exit " + strconv.Itoa(o.Code) + "\n--- stdout\n" + o.Out + "--- stderr\n" + o.Err
}

// Run runs a command line of a program, which was started by a path.
func (run Runner) Run(t *testing.T, path string, now func() time.Time, args ...string) Outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), kit.Program{
		Path:    path,
		Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut},
		Version: kit.VersionInfo{Version: "v0.0.0-test", Go: "go1.26.0", Platform: "linux/amd64"},
		Now:     now,
	}, args)
	return Outcome{Code: code, Out: out.String(), Err: errOut.String()}
}

// Buffer may be read while a command writes.
type Buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *Buffer) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(data)
}

func (b *Buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// Following is a command that runs until it is interrupted.
type Following struct {
	Out, Err *Buffer
	Cancel   context.CancelFunc
	Code     chan int

	t *testing.T
}

// Until waits for a string in the output.
func (f Following) Until(text string) {
	f.t.Helper()
	f.untilIn(f.Out, text)
}

// UntilNoted waits for a string on standard error.
func (f Following) UntilNoted(text string) {
	f.t.Helper()
	f.untilIn(f.Err, text)
}

func (f Following) untilIn(stream *Buffer, text string) {
	f.t.Helper()
	deadline := time.After(time.Minute)
	for !strings.Contains(stream.String(), text) {
		select {
		case <-deadline:
			f.t.Fatalf("%q is not written:\n%s\n%s", text, f.Out, f.Err)
		case code := <-f.Code:
			f.t.Fatalf("it ended with %d before %q was written:\n%s\n%s", code, text, f.Out, f.Err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// UntilMore waits until the output contains a string once more than before.
func (f Following) UntilMore(text, before string) {
	f.t.Helper()
	deadline := time.After(time.Minute)
	for strings.Count(f.Out.String(), text) <= strings.Count(before, text) {
		select {
		case <-deadline:
			f.t.Fatalf("%q is not written again:\n%s\n%s", text, f.Out, f.Err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Interrupt presses Ctrl-C and checks that the command ends.
func (f Following) Interrupt() {
	f.t.Helper()
	f.Cancel()
	select {
	case code := <-f.Code:
		if code != kit.ExitInterrupted {
			f.t.Errorf("exit %d after Ctrl-C: %s", code, f.Err)
		}
	case <-time.After(time.Minute):
		f.t.Error("Ctrl-C does not end it")
	}
}
