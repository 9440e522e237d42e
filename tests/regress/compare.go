// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

// fewest is how many values a figure needs in both runs to be judged: with fewer, no difference could be told from noise.
const fewest = 5

// significance is how probable it may be that noise alone explains a change: with five values each, all of one run have to be
// above all of the other.
const significance = 0.01

// judged are the units by which runs are compared, and from which relative change on that counts. Times of the clock and
// ratios of them are stored, but not judged, since they depend on what else the machine does. More is worse in all of them.
var judged = []struct {
	begins string
	least  float64
}{
	{"cpu-", 0.10},
	{"requests", 0.02},
	{"B/op", 0.05},
	{"allocs/op", 0.02},
	{"MiB", 0.15},
}

// leastOf returns from which relative change on a unit counts; false when it is not judged.
func leastOf(unit string) (float64, bool) {
	for _, j := range judged {
		if strings.HasPrefix(unit, j.begins) {
			return j.least, true
		}
	}
	return 0, false
}

// change is how a figure moved. Before and After are medians.
type change struct {
	figure
	Before, After float64
	P             float64
}

// relative is the change in relation to the figure before.
func (c change) relative() float64 { return (c.After - c.Before) / c.Before }

// comparison is what became of the figures.
type comparison struct {
	Worse, Better []change
	// Same counts the figures that did not move by more than noise, Few those with too few values, New and Gone those that
	// only one of the runs has.
	Same, Few, New, Gone int
}

// compare compares the judged figures of two runs.
func compare(before, after run) comparison {
	var c comparison
	known := map[string]figure{}
	for _, f := range before.Figures {
		if _, counts := leastOf(f.Unit); counts {
			known[f.key()] = f
		}
	}
	for _, f := range after.Figures {
		least, counts := leastOf(f.Unit)
		if !counts {
			continue
		}
		was, found := known[f.key()]
		delete(known, f.key())
		switch {
		case !found:
			c.New++
		case min(len(was.Values), len(f.Values)) < fewest:
			c.Few++
		default:
			c.add(moved(was, f), least)
		}
	}
	c.Gone = len(known)
	byKey := func(a, b change) int { return strings.Compare(a.key(), b.key()) }
	slices.SortFunc(c.Worse, byKey)
	slices.SortFunc(c.Better, byKey)
	return c
}

// moved compares the values of a figure by their ranks (Mann-Whitney), which presumes no distribution.
func moved(before, after figure) change {
	first, second := sample(before), sample(after)
	test := benchmath.AssumeNothing
	return change{
		figure: after, P: test.Compare(first, second).P,
		Before: test.Summary(first, 0.95).Center, After: test.Summary(second, 0.95).Center,
	}
}

func sample(f figure) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(f.Values), &benchmath.DefaultThresholds)
}

func (c *comparison) add(moved change, least float64) {
	switch relative := moved.relative(); {
	case moved.Before == moved.After, moved.P >= significance, math.Abs(relative) < least:
		c.Same++
	case relative > 0:
		c.Worse = append(c.Worse, moved)
	default:
		c.Better = append(c.Better, moved)
	}
}

// report prints a comparison, and tells whether anything became worse.
func report(out io.Writer, c comparison) (worse bool) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, group := range []struct {
		word    string
		changes []change
	}{{"worse", c.Worse}, {"better", c.Better}} {
		for _, moved := range group.changes {
			fmt.Fprintf(table, "  %s\t%s\t%.4g → %.4g %s\t%+.0f %%\tp=%.3f\n", group.word, moved.Benchmark, moved.Before, moved.After, moved.Unit, 100*moved.relative(), moved.P)
		}
	}
	_ = table.Flush()
	fmt.Fprintf(out, "  %d worse, %d better, %d within noise", len(c.Worse), len(c.Better), c.Same)
	for _, other := range []struct {
		count int
		what  string
	}{{c.New, "new"}, {c.Gone, "not measured this time"}, {c.Few, fmt.Sprintf("with fewer than %d values in a run, which are not judged (use COUNT=%d)", fewest, fewest)}} {
		if other.count > 0 {
			fmt.Fprintf(out, ", %d %s", other.count, other.what)
		}
	}
	fmt.Fprintln(out)
	return len(c.Worse) > 0
}
