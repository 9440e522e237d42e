// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

// startTimeout is how long a process may take until it is ready: the start of a large
// binary takes some 100 ms on an idle machine.
const startTimeout = time.Minute

// starter starts processes, all from one goroutine that is locked to its thread for ever: on Linux a child
// ends with the thread that started it, and inherits its nice value.
type starter struct {
	requests chan startRequest
}

// processStarter is the starter of this process. Its thread never ends: Go may have started other children
// from it, before it was locked, that end with their thread.
var processStarter = sync.OnceValue(newStarter)

type startRequest struct {
	attributes *os.ProcAttr
	answer     chan startAnswer
}

type startAnswer struct {
	process *os.Process
	err     error
}

func newStarter() *starter {
	s := &starter{requests: make(chan startRequest)}
	go s.serve()
	return s
}

// serve never unlocks the thread: its nice value must not affect other goroutines.
func (s *starter) serve() {
	runtime.LockOSThread()
	lowerPriority()
	for request := range s.requests {
		process, err := startProcess(request.attributes)
		request.answer <- startAnswer{process, err}
	}
}

// startProcess starts a process that inherits only the descriptors of the attributes.
// Go closes the ones that it opened; others were inherited, or opened by C code.
func startProcess(attributes *os.ProcAttr) (*os.Process, error) {
	if err := closeOnExec(); err != nil {
		return nil, err
	}
	return os.StartProcess(executable(), []string{"satchel-worker", protocol.Argument}, attributes)
}

func (s *starter) start(attributes *os.ProcAttr) (*os.Process, error) {
	request := startRequest{attributes, make(chan startAnswer, 1)}
	s.requests <- request
	answer := <-request.answer
	return answer.process, answer.err
}

// ends are the parent's ends of the connections to one child.
type ends struct {
	socket, stderr *os.File
	life           io.Closer // nil on Linux
}

func (e ends) close() {
	_ = e.socket.Close()
	_ = e.stderr.Close()
	if e.life != nil {
		_ = e.life.Close()
	}
}

// launch starts a process and returns before it is ready. It fails if the machine has
// no process, memory or descriptor left.
func (p *Pool) launch() (*process, error) {
	theirs, ours, err := connections()
	if err != nil {
		return nil, err
	}
	handle, err := p.start(&os.ProcAttr{
		Env:   []string{}, // nil would be this process's
		Files: append([]*os.File{p.null, p.null}, theirs...),
		Sys:   attributes(),
	})
	for _, file := range theirs {
		_ = file.Close()
	}
	if err != nil {
		ours.close()
		return nil, err
	}
	w := &process{handle: handle, ends: ours, ended: make(chan struct{})}
	go w.wait()
	return w, nil
}

// connections makes the pipes and the socket of one child: the child's ends after stdin
// and stdout, and the parent's ends.
func connections() (theirs []*os.File, ours ends, err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			for _, file := range opened {
				_ = file.Close()
			}
		}
	}()
	stderr, stderrChild, err := os.Pipe()
	if err != nil {
		return nil, ends{}, err
	}
	opened = append(opened, stderr, stderrChild)
	pair, err := socketPair()
	if err != nil {
		return nil, ends{}, os.NewSyscallError("socketpair", err)
	}
	// Go's poller is used for the parent's end only.
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return nil, ends{}, errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	socket, socketChild := os.NewFile(uintptr(pair[0]), "worker"), os.NewFile(uintptr(pair[1]), "worker")
	opened = append(opened, socket, socketChild)
	ours = ends{socket: socket, stderr: stderr}
	theirs = []*os.File{stderrChild, socketChild}
	life, lifeChild, err := lifePipe()
	if err != nil {
		return nil, ends{}, err
	}
	if life != nil {
		ours.life, theirs = life, append(theirs, lifeChild)
	}
	return theirs, ours, nil
}

// greet sends a started process its limits and waits until it is confined.
func (w *process) greet(l protocol.Limits) error {
	timeout := time.AfterFunc(startTimeout, func() { w.kill(endTime) })
	defer timeout.Stop()
	hello := append(protocol.Header{Kind: protocol.MessageHello, Length: protocol.LimitsSize}.Bytes(), l.Bytes()...)
	_, err := w.ends.socket.Write(hello)
	if err == nil {
		var got protocol.Answer
		if got, err = protocol.ReadAnswer(w.ends.socket, 0, 0); err == nil && got.Kind != protocol.MessageReady {
			err = protocol.ErrInvalid
		}
	}
	if err == nil {
		return nil
	}
	w.dispose()
	// The output of the process contains no input, since it has not received any.
	return fmt.Errorf("%w: it ended by %s: %s", err, w.finally, strings.TrimSpace(w.stderr.String()))
}

// isShortage tells whether a start failed because the machine has no resources left. It
// is for metrics only: every failure to start is ErrUnavailable.
func isShortage(err error) bool {
	for _, shortage := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, shortage) {
			return true
		}
	}
	return false
}
