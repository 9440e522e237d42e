// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

// process is the parent's side of a worker process.
type process struct {
	handle *os.Process
	ends   ends
	stderr tail

	// ended is closed when the process has been reaped; then the fields below are set
	// and stderr is complete.
	ended    chan struct{}
	status   syscall.WaitStatus
	finalCPU time.Duration
	finally  string // for messages

	namespace string
	jobs      uint32
	idleSince time.Time
	own       int64 // memory of its own when it became idle, in bytes

	mu     sync.Mutex
	killed end // why this process killed it; none if it did not
}

// end is how an attempt to do a job ended.
type end string

// Ends of an attempt. They are values of the label "end" of metrics.
const (
	endNone     end = ""
	endDone     end = "done"
	endError    end = "error"    // the handler returned one
	endCanceled end = "canceled" // by the caller, or by Close
	endPreempt  end = "preempted"
	endCPU      end = LimitCPU
	endMemory   end = LimitMemory
	endOutput   end = LimitOutput
	endTime     end = LimitTime
	endKernel   end = "killed"  // by the kernel, because memory was short
	endCrash    end = "crashed" // or another process killed it, or it sent an invalid message
	endStart    end = "unavailable"
	endStream   end = "stream" // what takes the stream failed
)

// wait runs until the process has ended.
func (w *process) wait() {
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&w.stderr, w.ends.stderr)
	}()
	if awaitStop(w.handle.Pid) {
		w.kill(endCrash) // a stopped process makes no progress
	}
	state, err := w.handle.Wait()
	w.finally = fmt.Sprint(state)
	if err != nil {
		w.finally = err.Error()
	} else {
		w.status, _ = state.Sys().(syscall.WaitStatus)
		w.finalCPU = state.UserTime() + state.SystemTime()
	}
	// Descendants that may still hold the pipe are not waited for.
	_ = w.ends.stderr.SetReadDeadline(time.Now().Add(time.Second))
	<-copied
	close(w.ended)
}

// kill ends the process. The first reason is kept.
func (w *process) kill(reason end) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed == endNone {
		w.killed = reason
		_ = w.handle.Kill()
	}
}

// dispose ends the process, waits for it and frees its resources.
func (w *process) dispose() {
	w.kill(endCanceled)
	<-w.ended
	w.ends.close()
}

// hasEnded tells whether the process has ended or was killed.
func (w *process) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.killed != endNone
	}
}

// result is the result of one attempt.
type result struct {
	end    end
	data   []byte
	cpu    time.Duration
	detail string // for messages, without any input
	err    error  // of what takes the stream
}

// do sends a job to the process and waits for the answer. Without an answer the process
// has ended.
func (w *process) do(ctx context.Context, r Request, o *Options) result {
	before := cpuTime(w.handle.Pid)
	w.jobs++
	stop := context.AfterFunc(ctx, func() { w.kill(endCanceled) })
	defer stop()
	timeout := time.AfterFunc(o.Wall, func() { w.kill(endTime) })
	defer timeout.Stop()

	got, err := w.exchange(r, before, o)
	if err == nil {
		cpu := max(cpuTime(w.handle.Pid)-before, 0)
		return result{end: answerEnds[got.Kind], data: got.Data, cpu: cpu}
	}
	if failed := new(streamError); errors.As(err, failed) {
		w.kill(endStream)
		<-w.ended
		return result{end: endStream, cpu: max(w.finalCPU-before, 0), err: failed.error}
	}
	if errors.Is(err, protocol.ErrInvalid) {
		w.kill(endCrash)
	}
	// The socket may be closed before the process has ended.
	w.awaitEnd()
	return w.resultOfEnd(before, o)
}

// resultOfEnd is the result of a job during which the process ended without an answer. before is its CPU time at the start of the job.
func (w *process) resultOfEnd(before time.Duration, o *Options) result {
	used := max(w.finalCPU-before, 0)
	why := w.classify()
	if why == endCPU && used < o.CPU/2 {
		// The job had not used its own budget: the limit of an earlier job was still set, and the process ended before
		// it was raised. That is no fault of the job, which may be tried again.
		why = endCrash
	}
	return result{end: why, cpu: used, detail: w.finally}
}

var answerEnds = map[byte]end{protocol.MessageResult: endDone, protocol.MessageError: endError, protocol.MessageLarge: endOutput}

// awaitEnd gives a process with a closed socket some time to end, and then kills it.
func (w *process) awaitEnd() {
	grace := time.NewTimer(2 * time.Second)
	defer grace.Stop()
	select {
	case <-w.ended:
	case <-grace.C:
		w.kill(endCrash)
		<-w.ended
	}
}

func (w *process) exchange(r Request, used time.Duration, o *Options) (protocol.Answer, error) {
	if err := raiseCPULimit(w.handle.Pid, used, o.CPU); err != nil {
		w.kill(endCrash)
		return protocol.Answer{}, err
	}
	stream, err := openStream(r)
	if err != nil {
		return protocol.Answer{}, err
	}
	if err := w.sendJob(r); err != nil {
		return protocol.Answer{}, err
	}
	got, err := w.readAnswer(stream, o)
	if err == nil && answerEnds[got.Kind] == endNone {
		err = protocol.ErrInvalid
	}
	return got, err
}

// readAnswer reads the parts of the stream, and the answer after them.
func (w *process) readAnswer(stream io.Writer, o *Options) (protocol.Answer, error) {
	for {
		got, err := protocol.ReadAnswer(w.ends.socket, w.jobs, o.Output)
		switch {
		case err != nil || got.Kind != protocol.MessageChunk:
			return got, err
		case stream == nil:
			return protocol.Answer{}, protocol.ErrInvalid
		}
		if _, err := stream.Write(got.Data); err != nil {
			return protocol.Answer{}, streamError{err}
		}
	}
}

// streamError is an error of what takes the stream of a job.
type streamError struct{ error }

func openStream(r Request) (io.Writer, error) {
	if r.Stream == nil {
		return nil, nil
	}
	stream, err := r.Stream()
	if err != nil {
		return nil, streamError{err}
	}
	return stream, nil
}

// sendJob writes the header together with the file, then the rest.
func (w *process) sendJob(r Request) error {
	h := protocol.Header{Kind: protocol.MessageJob, Name: uint8(len(r.Kind)), Job: w.jobs, Length: uint64(len(r.Data))} //nolint:gosec // checked in Run
	if r.File == nil {
		if _, err := w.ends.socket.Write(h.Bytes()); err != nil {
			return err
		}
	} else {
		h.Files = 1
		if err := w.sendWithFile(h.Bytes(), r.File); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w.ends.socket, r.Kind); err != nil {
		return err
	}
	_, err := w.ends.socket.Write(r.Data)
	return err
}

// sendWithFile writes bytes together with a descriptor of the file.
func (w *process) sendWithFile(b []byte, file *os.File) error {
	from, err := file.SyscallConn()
	if err != nil {
		return err
	}
	to, err := w.ends.socket.SyscallConn()
	if err != nil {
		return err
	}
	var sent int
	var failed error
	err = errors.Join(err, from.Control(func(fd uintptr) {
		rights := unix.UnixRights(int(fd))
		err = to.Write(func(socket uintptr) bool {
			sent, failed = unix.SendmsgN(int(socket), b, rights, nil, 0)
			return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
		})
	}))
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	_, err = w.ends.socket.Write(b[sent:])
	return err
}

// classify tells why a process has ended. A SIGKILL that this process did not send counts as the kernel's; the caller
// decides whether it was.
func (w *process) classify() end {
	w.mu.Lock()
	reason := w.killed
	w.mu.Unlock()
	killed := w.status.Signaled() && w.status.Signal() == syscall.SIGKILL
	switch {
	case reason != endNone && (killed || reason != endCrash):
		return reason
	case w.status.Signaled() && w.status.Signal() == syscall.SIGXCPU, w.status.Exited() && w.status.ExitStatus() == protocol.ExitCPU:
		return endCPU
	case killed:
		return endKernel
	case !w.status.Exited() || w.status.ExitStatus() != 2:
		return endCrash
	case w.stderr.has("newosproc", "failed to create new OS thread"):
		return endStart
	case w.stderr.has("out of memory", "cannot allocate memory", "cannot map pages", "stack overflow"):
		return endMemory
	default:
		return endCrash
	}
}

// tail keeps the first 4 KiB that a process wrote to stderr, to classify its end.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxStderr = 4096

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := maxStderr - t.text.Len(); room > 0 {
		t.text.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

func (t *tail) has(texts ...string) bool {
	all := t.String()
	for _, text := range texts {
		if bytes.Contains([]byte(all), []byte(text)) {
			return true
		}
	}
	return false
}

// limitError is the error of an attempt that a limit ended.
func limitError(e end, o *Options) error {
	budgets := map[end]string{
		endCPU: o.CPU.String(), endTime: o.Wall.String(), endMemory: inMebibytes(o.Memory), endOutput: inMebibytes(o.Output),
	}
	return &LimitError{Limit: string(e), Budget: budgets[e]}
}

func jobError(kind string, text []byte) error {
	return &JobError{Kind: kind, Message: string(text)}
}
