// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestMeterCountsPackagesOnly(t *testing.T) {
	m := &meter{title: "building", started: time.Now()}
	m.filter(strings.NewReader("internal/runtime/sys\ngithub.com/a/b.v2\ngo: downloading x v1\n# pkg\na.go:1:2: wrong\n"))
	if got := m.packages.Load(); got != 2 {
		t.Errorf("counted %d packages, want 2: other lines are messages for people", got)
	}
	if got, want := m.line(61*time.Second), "building: 2 packages compiled, 1m1s so far"; got != want {
		t.Errorf("line() = %q, want %q", got, want)
	}
}

func TestExitCodeIsThatOfTheCommand(t *testing.T) {
	if err := exec.Command(os.Args[0], "-test.run=^$").Run(); exitCode(err) != 0 {
		t.Errorf("exit code of a command that succeeded: %d", exitCode(err))
	}
	err := exec.Command(os.Args[0], "-no-such-flag").Run()
	if got := exitCode(err); got != 2 {
		t.Errorf("exit code of a command that ended with 2: %d", got)
	}
	if got := exitCode(errors.New("not started")); got != 1 {
		t.Errorf("exit code without a command: %d, want 1", got)
	}
}
