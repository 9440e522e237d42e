// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// lifelineEnv names the environment variable with the number of an inherited file descriptor: the read
// end of a pipe of which only the parent holds the write end. However the parent ends, SIGKILL included,
// the kernel closes that end, and this process exits. Unset, the process lives on its own.
const lifelineEnv = "SATCHEL_LIFELINE_FD"

// lifelineLost is the exit code of a process that lost its parent.
const lifelineLost = 70

// followLifeline ends this process when the parent is gone; without a descriptor it does nothing.
func followLifeline(descriptor string) error {
	if descriptor == "" {
		return nil
	}
	fd, err := strconv.ParseUint(descriptor, 10, 31)
	if err != nil {
		return fmt.Errorf("reading %s: %w", lifelineEnv, err)
	}
	pipe := os.NewFile(uintptr(fd), "lifeline")
	if pipe == nil {
		return fmt.Errorf("reading %s: %d is no open file descriptor", lifelineEnv, fd)
	}
	if err := os.Unsetenv(lifelineEnv); err != nil {
		return fmt.Errorf("clearing %s: %w", lifelineEnv, err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, pipe)
		os.Exit(lifelineLost)
	}()
	return nil
}
