// SPDX-License-Identifier: Apache-2.0

// Package child is the side of a worker process: it confines itself, receives jobs and calls their handlers. The side that
// starts processes and gives them jobs is package worker.
package child

import (
	"os"

	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

// Handler does one job inside a worker process. An error means that the job could not be
// done for an internal reason and is returned by Pool.Run as a string; a refusal of the
// input is part of the result, encoded by the handler. The handler has to reset the state
// that libraries keep between calls, since a process serves many jobs of one namespace.
type Handler func(Input) ([]byte, error)

// Input is the input of a handler.
type Input struct {
	// Data is the job's own copy.
	Data []byte
	// File is nil if the job has none. It can be read only, with ReadAt: the offset is
	// shared with the process that opened the file. It is closed after the job.
	File *os.File
	// Send sends a part of at most protocol.MaxChunk bytes of the job's stream, if its Request has one.
	Send func(part []byte) error
}

// Main runs the process as a worker and never returns if a Pool started it; else it
// returns at once. It is the first call in main, and in TestMain of packages that use a Pool.
func Main(handlers map[string]Handler) {
	if len(os.Args) != 2 || os.Args[1] != protocol.Argument {
		return
	}
	os.Exit(serve(handlers)) //nolint:forbidigo // the main of a worker process
}
