// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// guardCommand is the first argument that makes this program the guard.
const guardCommand = "guard"

// patience is how long a program may take to end after a signal.
const patience = 10 * time.Second

// program is a process that the guard runs.
type program struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"`
	Log  string   `json:"log"`
}

// guardSpec tells the guard what to run, and which folder goes in the end, if any.
type guardSpec struct {
	Programs []program `json:"programs"`
	Remove   string    `json:"remove"`
}

// guard runs programs until its standard input ends, which happens also when the demo is killed; then it ends
// them and removes a folder. When a program ends by itself it ends the others, says so on standard error, and
// returns 1.
func guard(specFile string, stdin io.Reader) int {
	// Caught and dropped, not ignored: programs inherit what is ignored.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	spec, err := readSpec(specFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	parentGone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		close(parentGone)
	}()
	ended := make(chan string, len(spec.Programs))
	children, err := startAll(spec.Programs, ended)
	left := len(children)
	if err == nil {
		select {
		case how := <-ended:
			err = errors.New(how)
			left--
		case <-parentGone:
		}
	}
	children.end(left, ended)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return remove(spec.Remove)
}

// remove removes a folder, into which processes that are just ending may still write.
func remove(dir string) int {
	if dir == "" {
		return 0
	}
	for started := time.Now(); time.Since(started) < 2*patience; time.Sleep(patience / 10) {
		if err := os.RemoveAll(dir); err == nil {
			return 0
		}
	}
	fmt.Fprintf(os.Stderr, "%s could not be removed\n", dir)
	return 1
}

func readSpec(file string) (guardSpec, error) {
	var spec guardSpec
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &spec)
	}
	return spec, err
}

// processes are the children of the guard.
type processes []*os.Process

// startAll starts the programs and returns those that run; the end of each is sent in words.
func startAll(programs []program, ended chan<- string) (processes, error) {
	var running processes
	for _, p := range programs {
		command, err := start(p)
		if err != nil {
			return running, fmt.Errorf("starting %s: %w", p.Name, err)
		}
		running = append(running, command.Process)
		go func() {
			err := command.Wait()
			ended <- fmt.Sprintf("%s ended by itself (%v); its last words were:\n%s", p.Name, orExit(err), tail(p.Log))
		}()
	}
	return running, nil
}

// tail returns the last lines of a log.
func tail(log string) string {
	const lines = 5
	content, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// orExit gives an exit without an error a name.
func orExit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func start(p program) (*exec.Cmd, error) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(p.Path, p.Args...)
	command.Stdout, command.Stderr = log, log
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBECONFIG=") })
	return command, command.Start()
}

// end asks the processes to end, waits for as many as are left, and then kills.
func (p processes) end(left int, ended <-chan string) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
		for _, process := range p {
			_ = process.Signal(signal)
		}
		deadline := time.After(patience)
		for late := false; left > 0 && !late; {
			select {
			case <-ended:
				left--
			case <-deadline:
				late = true
			}
		}
	}
}

// guarded is a running guard, seen from the demo.
type guarded struct {
	command *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
	problem error
}

// startGuard starts a guard in a process group of its own, so that Ctrl-C reaches the demo only.
func startGuard(file string, spec guardSpec) (*guarded, error) {
	content, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self, guardCommand, file)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the guard of the controllers: %w", err)
	}
	g := &guarded{command: command, stdin: stdin, ended: make(chan struct{})}
	go g.watch(stderr)
	return g, nil
}

// watch waits for the guard to end and keeps what it said.
func (g *guarded) watch(stderr io.Reader) {
	defer close(g.ended)
	said, _ := io.ReadAll(stderr)
	if err := g.command.Wait(); err != nil {
		g.problem = err
	}
	if len(said) > 0 {
		g.problem = fmt.Errorf("%s", bytes.TrimSpace(said))
	}
}

// stop ends the programs and returns when they are gone. What ended before has been told by then.
func (g *guarded) stop() error {
	select {
	case <-g.ended:
		return nil
	default:
	}
	_ = g.stdin.Close()
	<-g.ended
	return g.problem
}

// abandon ends the guard without letting it remove anything.
func (g *guarded) abandon() {
	_ = g.command.Process.Kill()
	<-g.ended
}
