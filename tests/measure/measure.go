// SPDX-License-Identifier: Apache-2.0

// Package measure tells what something takes in a process of its own: a copy of the test binary.
package measure

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// variable holds, in the process of its own, what is to be done.
const variable = "SATCHEL_TEST_ELSEWHERE"

// Main runs the tests of a package or, in a process that Elsewhere started, does what that was told
// to, and ends the process. The package's TestMain calls it.
func Main(m *testing.M, do func(args []string) error) {
	args := strings.Fields(os.Getenv(variable))
	if len(args) == 0 {
		os.Exit(m.Run())
	}
	if err := measured(do, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measured does it, and says how long that took and by how much the process grew.
func measured(do func(args []string) error, args []string) error {
	before, err := PeakKiB("self")
	if err != nil {
		return err
	}
	start := time.Now()
	if err := do(args); err != nil {
		return err
	}
	took := time.Since(start)
	after, err := PeakKiB("self")
	fmt.Println(took.Milliseconds(), after-before)
	return err
}

// Elsewhere has Main's function called in a process of its own, with arguments without spaces, and
// returns how many milliseconds that took, and by how many KiB the process grew at most. Temporary
// files of that process go with the test.
func Elsewhere(t testing.TB, args ...string) (took, grown int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+strings.Join(args, " "), "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(out), &took, &grown); err != nil {
		t.Fatal(err)
	}
	return took, grown
}

// PeakKiB reads the highest resident size of a process, or of "self".
func PeakKiB(pid string) (int, error) {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		}
	}
	return 0, errors.New("no VmHWM")
}

// CPU reports, at the end of a benchmark, the CPU time of this process and its ended children for one operation, as cpu-ns/op.
// Call it right before the loop.
func CPU(b *testing.B) {
	b.Helper()
	before, err := CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		after, err := CPUTime()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64((after-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
}

// CPUTime is the CPU time that this process and its ended children have used, in user and kernel mode.
func CPUTime() (time.Duration, error) {
	total := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return 0, fmt.Errorf("reading the CPU time: %w", err)
		}
		total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return total, nil
}
