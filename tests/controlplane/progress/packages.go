// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Packages follows the output of `go build -v`: a line for each package it compiles, among
// downloads and errors.
type Packages struct {
	mu    sync.Mutex
	part  []byte
	count int
	last  string
	other []string // the last lines that name no package
}

// Write takes output of the build.
func (c *Packages) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part = append(c.part, data...)
	for {
		line, rest, found := bytes.Cut(c.part, []byte("\n"))
		if !found {
			return len(data), nil
		}
		c.part = rest
		c.add(string(line))
	}
}

func (c *Packages) add(line string) {
	const kept = 30
	c.last = line
	if !strings.Contains(line, " ") {
		c.count++
		return
	}
	c.other = append(c.other, line)
	c.other = c.other[max(0, len(c.other)-kept):]
}

// String says how far the build is.
func (c *Packages) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == "" {
		return "building the control plane: linking, or looking at what is built already"
	}
	return fmt.Sprintf("building the control plane: %d packages compiled, last output: %s", c.count, c.last)
}

// Problem returns the last messages of the build, or nil.
func (c *Packages) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.other) == 0 {
		return nil
	}
	return errors.New(strings.Join(c.other, "\n"))
}
