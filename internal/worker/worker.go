// SPDX-License-Identifier: Apache-2.0

// Package worker runs untrusted content through child processes.
//
// A Pool starts children of the same binary, gives each job to one of them and returns
// what the job's handler returned. A child is confined before it reads a job: it opens no
// file, has no network, starts no program, and ends when it exceeds its CPU time or its
// memory. See ADR 19.
//
// A binary that uses a Pool calls Main first:
//
//	func main() {
//		worker.Main(map[string]worker.Handler{"convert": convert})
//		...
//	}
//
// Run blocks until the job's turn comes and the job is done. A caller that must not wait
// for other jobs of the same namespace calls it in a goroutine of its own.
package worker

import (
	"os"
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
}

// Request is a job.
type Request struct {
	// Namespace that is charged for the CPU time of the job. A process serves one namespace
	// only.
	Namespace string
	// Kind names the handler.
	Kind string
	// Data and File are passed to the handler. File has to be opened for reading only, and
	// stays open; the caller closes it after Run.
	Data []byte
	File *os.File
}

// argument is the argument with which a Pool starts its own binary.
const argument = "satchel-worker-process"

// Main runs the process as a worker and never returns if a Pool started it; else it
// returns at once. It is the first call in main, and in TestMain of packages that use a Pool.
func Main(handlers map[string]Handler) {
	if len(os.Args) != 2 || os.Args[1] != argument {
		return
	}
	os.Exit(serve(handlers)) //nolint:forbidigo // the main of a worker process
}
