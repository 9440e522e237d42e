// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/tests/measure"
)

// output is what `go test -bench` prints of a benchmark with values around a level, with noise (0.03 for 3 %).
func output(random *rand.Rand, level, noise float64) string {
	var text strings.Builder
	text.WriteString("goos: linux\ngoarch: amd64\npkg: example.org/p\ncpu: Some CPU\n")
	for range 6 {
		cpu := level * (1 + noise*(2*random.Float64()-1))
		fmt.Fprintf(&text, "BenchmarkWork-2  1  %f ns/op  %f cpu-ns/op  %d requests  100 allocs/op\n", 3*cpu, cpu, int(level/1e6))
	}
	return text.String() + "PASS\nok  \texample.org/p\t1.0s\n"
}

// TestS8InjectedSlowdown: a slowdown of 20 % is reported, an improvement is told apart from it, and noise of 5 % is neither.
func TestS8InjectedSlowdown(t *testing.T) {
	const seeds = 200
	missed, alarms := 0, 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // reproducible
		before, err := read(strings.NewReader(output(random, 100e6, 0.05)))
		if err != nil {
			t.Fatal(err)
		}
		for level, want := range map[float64][2]int{100e6: {0, 0}, 120e6: {2, 0}, 80e6: {0, 2}} {
			after, err := read(strings.NewReader(output(random, level, 0.05)))
			if err != nil {
				t.Fatal(err)
			}
			got := compare(before, after)
			switch found := [2]int{len(got.Worse), len(got.Better)}; {
			case found == want:
			case level == 100e6:
				alarms++
			default:
				missed++
			}
		}
	}
	if missed > 0 || alarms > 0 {
		t.Errorf("of %d runs: %d changes missed, %d false alarms", seeds, missed, alarms)
	}
}

// TestTrack: the first run becomes the baseline, the next ones are compared with it until another one is accepted.
func TestTrack(t *testing.T) {
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 1)) //nolint:gosec // reproducible
	run := func(level float64, accept bool) (string, bool) {
		var out bytes.Buffer
		worse, err := track(strings.NewReader(output(random, level, 0.02)), &out, dir, "abc1234", accept)
		if err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(out.String(), "1.0s\n")
		return said, worse
	}
	for _, step := range []struct {
		level  float64
		accept bool
		says   string
		worse  bool
	}{
		{100e6, false, "4 figures of this run are the baseline for linux/amd64 with", false},
		{100e6, false, "0 worse, 0 better, 3 within noise", false},
		{130e6, false, "100 → 130 requests", true},
		{130e6, true, "are the baseline", false},
		{130e6, false, "0 worse, 0 better, 3 within noise", false},
	} {
		said, worse := run(step.level, step.accept)
		if worse != step.worse || !strings.Contains(said, step.says) {
			t.Errorf("at %g: worse %t, %s", step.level, worse, said)
		}
	}
	if _, err := track(strings.NewReader("FAIL\n"), &bytes.Buffer{}, dir, "", false); err == nil {
		t.Error("a run without benchmarks passes")
	}
}

// TestFewValuesAreNotJudged: a single run is stored, and says why it is not judged.
func TestFewValuesAreNotJudged(t *testing.T) {
	one := run{Figures: []figure{{Benchmark: "B", Unit: "requests", Values: []float64{1}}}}
	many := run{Figures: []figure{{Benchmark: "B", Unit: "requests", Values: []float64{9}}, {Benchmark: "New", Unit: "cpu-s", Values: []float64{1}}}}
	var out bytes.Buffer
	if report(&out, compare(one, many)) || !strings.Contains(out.String(), "1 new, 1 with fewer than 5 values") {
		t.Errorf("got %s", out.String())
	}
}

// TestS8RealSlowdown measures the CPU time of real work with and without 20 % more of it.
func TestS8RealSlowdown(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("CPU time depends on the machine: for the release suite, SATCHEL_FULL=1")
	}
	figureOf := func(rounds int) figure {
		f := figure{Benchmark: "Work", Unit: "cpu-ns/op"}
		for range 8 {
			used, err := measure.CPUTime()
			if err != nil {
				t.Fatal(err)
			}
			for range rounds {
				work()
			}
			after, err := measure.CPUTime()
			if err != nil {
				t.Fatal(err)
			}
			f.Values = append(f.Values, float64(after-used)/float64(time.Nanosecond))
		}
		return f
	}
	before, after := run{Figures: []figure{figureOf(500)}}, run{Figures: []figure{figureOf(600)}}
	got := compare(before, after)
	if len(got.Worse) != 1 {
		t.Errorf("20 %% more work is not reported: %v and %v", before.Figures[0].Values, after.Figures[0].Values)
	}
	t.Logf("%+v", got.Worse)
}

// work uses the CPU for about a millisecond.
func work() {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "%d", i)
	}
}
