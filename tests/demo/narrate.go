// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// narrator tells what happens, with the seconds since the start.
type narrator struct {
	mu      sync.Mutex
	out     io.Writer
	started time.Time
	chapter int
	last    time.Time
}

func newNarrator(out io.Writer) *narrator {
	return &narrator{out: out, started: time.Now(), last: time.Now()}
}

// chapterf begins a numbered part.
func (n *narrator) chapterf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.chapter++
	n.printf("\n== %d. %s\n", n.chapter, fmt.Sprintf(format, args...))
}

// sayf prints a line with the time.
func (n *narrator) sayf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.printf("%6.1fs  %s\n", time.Since(n.started).Seconds(), fmt.Sprintf(format, args...))
}

// text prints lines as they are, indented.
func (n *narrator) text(lines string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.printf("         %s\n", strings.ReplaceAll(strings.TrimRight(lines, "\n"), "\n", "\n         "))
}

// waitingf prints a line when nothing was said for ten seconds.
func (n *narrator) waitingf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.last) >= 10*time.Second {
		n.printf("%6.1fs  %s\n", time.Since(n.started).Seconds(), fmt.Sprintf(format, args...))
	}
}

func (n *narrator) printf(format string, args ...any) {
	n.last = time.Now()
	fmt.Fprintf(n.out, format, args...)
}
