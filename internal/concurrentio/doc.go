// SPDX-License-Identifier: Apache-2.0

// Package concurrentio runs the stages of a long stream at once, each in a goroutine of its own, with buffers of fixed size
// between them. A short stream, which most are, costs no goroutine and no buffer.
package concurrentio

import "fmt"

const (
	// chunkBytes is how much goes from one stage to the next at once. It fits into the cache of a core.
	chunkBytes = 128 << 10
	// chunks is how many there are between two stages, so that neither waits for each chunk of the other.
	chunks = 4
)

// guarded calls do, and returns its panic as an error: a panic in a goroutine of our own would end the process, where one in
// a reconcile fails that reconcile only.
func guarded(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("internal error: %v", cause)
		}
	}()
	return do()
}
