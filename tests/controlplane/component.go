// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// healthPoll is how often a starting component is asked whether it is healthy.
	healthPoll = 50 * time.Millisecond
	// startTimeout bounds the start of one component, on a machine with much else to do.
	startTimeout = 2 * time.Minute
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 5 * time.Second
)

// ErrExternal is returned where a component of an existing cluster should be controlled.
var ErrExternal = errors.New("the cluster was not started by this process, so its components cannot be controlled: " +
	"unset " + KubeconfigEnv)

// ErrNotRunning is returned where a signal needs a running component.
var ErrNotRunning = errors.New("the component is not running")

// Component is one program of a control plane. It keeps its data, port and certificates over restarts.
// Its methods may be called from several goroutines.
type Component struct {
	name     string
	args     []string
	port     int
	dir      string // of the control plane
	binDir   string
	lifeline *os.File // read end
	healthy  func(context.Context) error

	mu   sync.Mutex
	proc *process
}

// Name returns the name of the program.
func (c *Component) Name() string { return c.name }

// LogPath returns the file with the output of all runs of the program.
func (c *Component) LogPath() string { return filepath.Join(c.dir, "logs", c.name+".log") }

// Start starts the program, unless it runs already, and waits until it is healthy.
func (c *Component) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	proc, err := c.launch(ctx)
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.name, err)
	}
	if err := c.waitHealthy(ctx, proc); err != nil {
		return fmt.Errorf("starting %s: %w; the end of its log %s:\n%s", c.name, err, c.LogPath(), tail(c.LogPath(), 15))
	}
	return nil
}

func (c *Component) launch(ctx context.Context) (*process, error) {
	if c.external() {
		return nil, ErrExternal
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc.running() {
		return c.proc, nil
	}
	if err := waitPortFree(ctx, c.port); err != nil {
		return nil, err
	}
	proc, err := launch(command{
		path: filepath.Join(c.binDir, c.name), args: c.args, dir: c.dir, log: c.LogPath(), lifeline: c.lifeline,
	})
	if err == nil {
		c.proc = proc
	}
	return proc, err
}

// waitHealthy polls until the health check succeeds, the process ends, or the time is up.
func (c *Component) waitHealthy(ctx context.Context, proc *process) error {
	for {
		err := c.healthy(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-proc.done:
			return fmt.Errorf("it ended: %w", proc.result())
		case <-ctx.Done():
			return fmt.Errorf("it did not become healthy: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(healthPoll):
		}
	}
}

// Stop ends the program: SIGTERM, and SIGKILL when it still runs after 5 seconds or when the context ends.
func (c *Component) Stop(ctx context.Context) error {
	proc, err := c.process()
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stopping %s: %w", c.name, err)
	}
	// A paused process would keep SIGTERM pending.
	proc.signal(syscall.SIGTERM)
	proc.signal(syscall.SIGCONT)
	select {
	case <-proc.done:
		return nil
	case <-time.After(stopGrace):
	case <-ctx.Done():
	}
	return proc.kill()
}

// Kill ends the program with SIGKILL and waits until it is gone.
func (c *Component) Kill() error {
	proc, err := c.process()
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("killing %s: %w", c.name, err)
	}
	return proc.kill()
}

// Pause stops the program with SIGSTOP: its connections stay open and nothing answers.
func (c *Component) Pause() error { return c.signal(syscall.SIGSTOP) }

// Resume lets a paused program go on.
func (c *Component) Resume() error { return c.signal(syscall.SIGCONT) }

// Running reports whether the process exists, be it healthy, paused or neither.
func (c *Component) Running() bool {
	_, err := c.process()
	return err == nil
}

// PID returns the id of the running process, or 0.
func (c *Component) PID() int {
	proc, err := c.process()
	if err != nil {
		return 0
	}
	return proc.cmd.Process.Pid
}

func (c *Component) signal(signal syscall.Signal) error {
	proc, err := c.process()
	if err != nil {
		return fmt.Errorf("sending %s the signal %q: %w", c.name, signal, err)
	}
	proc.signal(signal)
	return nil
}

// process returns the running process.
func (c *Component) process() (*process, error) {
	if c.external() {
		return nil, ErrExternal
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.proc.running() {
		return nil, ErrNotRunning
	}
	return c.proc, nil
}

// external reports whether the component belongs to a cluster that exists without this process.
func (c *Component) external() bool { return c.binDir == "" }
