// SPDX-License-Identifier: Apache-2.0

// Command tally reads the JSON of `go test -json` on standard input, prints what plain `go test` prints (a
// line a package, and the output of what failed), and closes with the slowest tests, the number of tests and the time. It
// exits with 1 when a test or a build failed, or when no test ran. Several runs may follow one another on
// the same input; a line {"Action":"go-test-failed"} says that one of them exited with an error.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	t := newTally(os.Stdout)
	started := time.Now()
	if err := t.read(os.Stdin); err != nil {
		fmt.Fprintf(os.Stderr, "tally: reading the test results: %v\n", err)
		os.Exit(1)
	}
	if !t.close(time.Since(started)) {
		os.Exit(1)
	}
}
