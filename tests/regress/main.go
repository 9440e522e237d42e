// SPDX-License-Identifier: Apache-2.0

// Command regress reads what `go test -bench` prints on standard input, prints it, and compares its figures with those of an
// earlier run on a machine of the same class: it names what became worse or better by more than noise.
//
//	go test -run '^$' -bench . -benchmem -count 6 ./... | go run ./tests/regress -dir DIR
//
// The figures are stored as JSON in DIR/CLASS/latest.json, and the first ones also as DIR/CLASS/baseline.json; -accept replaces
// the baseline. It exits with 1 when a figure became worse, with 2 when the input has none or cannot be read.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	dir := flag.String("dir", "", "The folder for the figures.")
	commit := flag.String("commit", "", "The commit that is measured, for the reader.")
	accept := flag.Bool("accept", false, "Make these figures the baseline, whatever they are.")
	flag.Parse()
	worse, err := track(os.Stdin, os.Stdout, *dir, *commit, *accept)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "regress:", err)
		os.Exit(2)
	case worse:
		os.Exit(1)
	}
}

// track stores the figures of a run and compares them with the baseline.
func track(in io.Reader, out io.Writer, dir, commit string, accept bool) (worse bool, err error) {
	now, err := read(io.TeeReader(in, out))
	if err != nil {
		return false, err
	}
	now.Commit, now.Time, now.Cores = commit, time.Now().UTC().Truncate(time.Second), runtime.NumCPU()
	dir = filepath.Join(dir, now.class())
	if err := now.store(filepath.Join(dir, "latest.json")); err != nil {
		return false, err
	}
	baseline := filepath.Join(dir, "baseline.json")
	before, err := load(baseline)
	if err != nil {
		return false, err
	}
	if before == nil || accept {
		fmt.Fprintf(out, "\n%d figures of this run are the baseline for %s now: %s\n", len(now.Figures), now.machine(), baseline)
		return false, now.store(baseline)
	}
	changes := compare(*before, now)
	fmt.Fprintf(out, "\nCompared with the baseline of %s (%s), on %s:\n", before.Time.Format(time.DateOnly), before.commit(), now.machine())
	return report(out, changes), nil
}
