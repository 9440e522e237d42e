// SPDX-License-Identifier: Apache-2.0

// Command progress runs a command and says at least every ten seconds that it still runs, so that a cold
// build, which takes minutes, does not look stuck; also without a terminal.
//
//	progress [-title TEXT] COMMAND [ARGUMENT...]
//
// The names of packages, which `go build -v` prints, are counted instead of shown; all other output passes
// unchanged. The exit code is that of the command. It uses the standard library only, because it has to be
// there before anything else is built.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"sync/atomic"
	"syscall"
	"time"
)

// every is the longest silence.
const every = 10 * time.Second

func main() {
	title := flag.String("title", "", "what is going on, in words; the command itself by default")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: progress [-title TEXT] COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	if *title == "" {
		*title = flag.Arg(0)
	}
	os.Exit(run(*title, flag.Args()))
}

// run runs the command and returns the exit code.
func run(title string, args []string) int {
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stdout = os.Stdin, os.Stdout
	stderr, err := command.StderrPipe()
	if err != nil {
		fmt.Fprintf(os.Stderr, "progress: %v\n", err)
		return 1
	}
	started := time.Now()
	if err := command.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "progress: starting %s: %v\n", args[0], err)
		return 1
	}
	forwardSignals(command.Process)
	meter := &meter{title: title, started: started}
	stop := meter.tick()
	meter.filter(stderr)
	err = command.Wait()
	stop()
	return exitCode(err)
}

// forwardSignals hands a request to end on to the child, which a terminal has asked already.
func forwardSignals(child *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range signals {
			_ = child.Signal(s)
		}
	}()
}

// exitCode translates what waiting for the command returned.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	default:
		fmt.Fprintf(os.Stderr, "progress: %v\n", err)
		return 1
	}
}

// meter counts packages and reports.
type meter struct {
	title    string
	started  time.Time
	packages atomic.Int64
}

// packageName matches a line of `go build -v`: an import path and nothing else.
var packageName = regexp.MustCompile(`^[A-Za-z0-9_.~-]+(/[A-Za-z0-9_.~-]+)*$`)

// filter counts the names of packages and passes the other lines on, until the reader ends.
func (m *meter) filter(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if packageName.Match(lines.Bytes()) {
			m.packages.Add(1)
			continue
		}
		fmt.Fprintln(os.Stderr, lines.Text())
	}
	_, _ = io.Copy(os.Stderr, r) // what follows a line that is too long
}

// tick starts to report; the returned function ends it.
func (m *meter) tick() (stop func()) {
	ticker, quit := time.NewTicker(every), make(chan struct{})
	go func() {
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				fmt.Fprintln(os.Stderr, m.line(time.Since(m.started)))
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(quit)
	}
}

// line says what is going on.
func (m *meter) line(elapsed time.Duration) string {
	elapsed = elapsed.Round(time.Second)
	if n := m.packages.Load(); n > 0 {
		return fmt.Sprintf("%s: %d packages compiled, %s so far", m.title, n, elapsed)
	}
	return fmt.Sprintf("%s: %s so far", m.title, elapsed)
}
