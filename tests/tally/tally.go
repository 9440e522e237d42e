// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`, see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// tally counts tests and keeps the output of those that have not ended.
type tally struct {
	out    io.Writer
	output map[string][]string // of a test or package that has not ended

	running map[string]bool // packages

	tests, subtests, passed, failed, skipped, packages int
	broken                                             bool
	skips                                              []string
	slow                                               []event // tests of at least slowTest
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, output: map[string][]string{}, running: map[string]bool{}}
}

const (
	// slowTest is from which time on a test is named at the end.
	slowTest = 10 * time.Second
	// mostSlow is how many of them are named: those that took longest.
	mostSlow = 10
)

// silence is the longest pause without a word about what is going on.
const silence = 30 * time.Second

// read handles events until the input ends. A line that is no event is passed on. While nothing is printed it
// says now and then what still runs.
func (t *tally) read(r io.Reader) error {
	lines, failed := make(chan []byte), make(chan error, 1)
	go scan(r, lines, failed)
	ticker := time.NewTicker(silence)
	defer ticker.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return <-failed
			}
			t.line(line)
		case <-ticker.C:
			fmt.Fprintf(t.out, "... %d tests so far; running: %s\n", t.tests, t.runs())
		}
	}
}

// scan sends the lines of the input and then the error that ended it, or nil.
func scan(r io.Reader, lines chan<- []byte, failed chan<- error) {
	defer close(lines)
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			lines <- line
		}
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			continue
		}
		failed <- err
		return
	}
}

func (t *tally) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		_, _ = t.out.Write(line)
		return
	}
	t.handle(e)
}

// runs names the packages with running tests, in short.
func (t *tally) runs() string {
	if len(t.running) == 0 {
		return "none, packages are being compiled"
	}
	var names []string
	for name := range t.running {
		names = append(names, path.Base(name))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (t *tally) handle(e event) {
	switch e.Action {
	case "start":
		t.running[e.Package] = true
	case "output":
		t.keep(e)
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "build-fail", "go-test-failed":
		t.broken = true
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
		} else {
			t.endTest(e)
		}
	}
}

// keep stores output under the test it belongs to: that of a subtest under its top-level test.
func (t *tally) keep(e event) {
	key := key(e)
	t.output[key] = append(t.output[key], e.Output)
}

func key(e event) string {
	top, _, _ := strings.Cut(e.Test, "/")
	return e.Package + "\x00" + top
}

func (t *tally) endTest(e event) {
	switch e.Action {
	case "pass":
		t.passed++
	case "fail":
		t.failed++
	case "skip":
		t.skipped++
		t.skips = append(t.skips, e.Test+" ("+e.Package+")"+t.reason(e))
	}
	if strings.Contains(e.Test, "/") {
		t.subtests++
		return
	}
	t.tests++
	if e.Elapsed >= slowTest.Seconds() {
		t.slow = append(t.slow, e)
	}
	if e.Action == "fail" {
		fmt.Fprint(t.out, strings.Join(t.output[key(e)], ""))
	}
	delete(t.output, key(e))
}

// reason finds the sentence that a skipped test gave.
func (t *tally) reason(e event) string {
	lines := t.output[key(e)]
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			return ": " + line
		}
	}
	return ""
}

// endPackage prints the line of the package; and, when it failed, what tests that never ended wrote, as
// after a panic or a time-out.
func (t *tally) endPackage(e event) {
	delete(t.running, e.Package)
	lines := t.output[key(e)]
	if e.Action == "fail" {
		t.broken = true
		for k, unfinished := range t.output {
			if strings.HasPrefix(k, e.Package+"\x00") && k != key(e) {
				fmt.Fprint(t.out, strings.Join(unfinished, ""))
			}
		}
		fmt.Fprint(t.out, strings.Join(lines, ""))
	} else if len(lines) > 0 && e.Action != "skip" {
		fmt.Fprint(t.out, lines[len(lines)-1])
	}
	if e.Action != "skip" { // no test files
		t.packages++
	}
	for k := range t.output {
		if strings.HasPrefix(k, e.Package+"\x00") {
			delete(t.output, k)
		}
	}
}

// close prints the sum and tells whether all is well.
func (t *tally) close(elapsed time.Duration) bool {
	fmt.Fprintln(t.out)
	for _, skip := range t.skips {
		fmt.Fprintln(t.out, "skipped:", skip)
	}
	slices.SortFunc(t.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, test := range t.slow[:min(mostSlow, len(t.slow))] {
		fmt.Fprintf(t.out, "slow: %.0f s %s (%s)\n", test.Elapsed, test.Test, test.Package)
	}
	ok := !t.broken && t.failed == 0 && t.tests > 0
	verdict := "PASS"
	if !ok {
		verdict = "FAIL"
	}
	fmt.Fprintf(t.out, "%s: %d tests and %d subtests in %d packages: %d passed, %d failed, %d skipped, in %s\n",
		verdict, t.tests, t.subtests, t.packages, t.passed, t.failed, t.skipped, elapsed.Round(100*time.Millisecond))
	return ok
}
