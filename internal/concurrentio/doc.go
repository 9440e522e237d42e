// SPDX-License-Identifier: Apache-2.0

// Package concurrentio runs the stages of a long stream at once, each in a goroutine of its own, with buffers of fixed size
// between them. A short stream, which most are, costs no goroutine and no buffer.
package concurrentio

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	// chunkBytes is how much goes from one stage to the next at once. It fits into the cache of a core.
	chunkBytes = 128 << 10
	// chunks is how many there are between two stages, so that neither waits for each chunk of the other.
	chunks = 4
)

// guarded calls do, and returns its panic as an error that names the function that panicked: a panic in a goroutine of our own
// would end the process, where one in a reconcile fails that reconcile only.
func guarded(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("internal error in %s: %v", panicked(), cause)
		}
	}()
	return do()
}

// panicked is the function that panicked, with its file and line, for the deferred function that calls it.
func panicked() string {
	const own = 3 // runtime.Callers, this function and the deferred one
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(own, callers[:])])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") || !more {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line)
		}
	}
}
