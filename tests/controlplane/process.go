// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// lifelineEnv tells a child the number of the file descriptor on which it waits for the end of its
// parent; tests/cluster has the other half.
const lifelineEnv = "SATCHEL_LIFELINE_FD"

// lifelineFD is the first of exec.Cmd.ExtraFiles in the child.
const lifelineFD = 3

// command is what to run.
type command struct {
	path     string
	args     []string
	dir      string // working directory and home
	log      string // appended to
	lifeline *os.File
}

// process is a child. Its channel done is closed when it has ended and was waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait; read it after done
}

// launch starts a child with a minimal environment, as a proxy or a credential of the user's must not
// reach the control plane, and in a process group of its own, so that an interrupt from the terminal
// reaches only the parent, which then stops its children in order.
func launch(c command) (*process, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	fmt.Fprintf(log, "--- %s %s %q\n", time.Now().Format(time.RFC3339), c.path, c.args)
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = []string{
		"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(),
		lifelineEnv + "=" + strconv.Itoa(lifelineFD),
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{c.lifeline}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// running reports whether the process has not ended yet; a nil process never ran.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// result says how the process ended.
func (p *process) result() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

// signal sends a signal; to a process that just ended it does nothing.
func (p *process) signal(signal syscall.Signal) { _ = p.cmd.Process.Signal(signal) }

// kill ends the process at once and waits for that.
func (p *process) kill() error {
	p.signal(syscall.SIGKILL)
	select {
	case <-p.done:
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("process %d survived SIGKILL for 30 s", p.cmd.Process.Pid)
	}
}
