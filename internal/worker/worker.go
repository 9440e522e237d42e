// SPDX-License-Identifier: Apache-2.0

// Package worker runs untrusted content through child processes.
//
// A Pool starts children of the same binary, gives each job to one of them and returns
// what the job's handler returned. A child is confined before it reads a job: it opens no
// file, has no network, starts no program, and ends when it exceeds its CPU time or its
// memory. See ADR 19.
//
// A binary that uses a Pool calls child.Main first:
//
//	func main() {
//		child.Main(map[string]child.Handler{"convert": convert})
//		...
//	}
//
// Run blocks until the job's turn comes and the job is done. A caller that must not wait
// for other jobs of the same namespace calls it in a goroutine of its own.
package worker

import (
	"io"
	"os"
)

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
	// Stream returns where the handler's stream goes, which may be larger than Options.Output: each call of Write gets one part.
	// It is called at the begin of each attempt, which starts the stream from its beginning. An error of it, or of the writer,
	// ends the job and is returned by Run. Nil: the handler may have no stream.
	Stream func() (io.Writer, error)
}
