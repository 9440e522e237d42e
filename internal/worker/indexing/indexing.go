// SPDX-License-Identifier: Apache-2.0

// Package indexing has the jobs of worker processes that index catalogs. The files of a catalog are passed by descriptor; what
// is written is streamed back, since a worker process may write no file.
package indexing

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/catalog/index"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

// Kinds of jobs.
const (
	buildKind     = "index-catalog"
	summarizeKind = "list-packages"
)

// Handlers are the jobs, for child.Main.
func Handlers() map[string]child.Handler {
	return map[string]child.Handler{buildKind: build, summarizeKind: summarize}
}

// Runner runs jobs in worker processes: a worker.Pool.
type Runner interface {
	Run(ctx context.Context, request worker.Request) ([]byte, error)
}

// Catalog is what is indexed.
type Catalog struct {
	// File and Files are those of package packed. The file is open for reading only.
	File  *os.File
	Files []packed.Entry
	// Root is the folder or file of the catalog in them.
	Root   string
	Limits fbc.Limits
}

// Output is where the blobs are written to.
type Output struct{ All, Lean io.Writer }

type buildRequest struct {
	Files  []packed.Entry
	Root   string
	Limits fbc.Limits
}

type buildAnswer struct {
	// Invalid and Exceeded are why the catalog is refused; empty for none.
	Invalid, Exceeded string
	Index             []byte
}

type summarizeAnswer struct{ Index []byte }

// Build is index.Build in a worker process, on the CPU budget of a namespace. Output is called at the begin of each attempt. An
// error about the catalog has a reason of package fetch.
func Build(ctx context.Context, runner Runner, namespace string, c Catalog, output func() (Output, error)) (*index.Index, error) {
	request, err := json.Marshal(buildRequest{Files: c.Files, Root: c.Root, Limits: c.Limits})
	if err != nil {
		return nil, fmt.Errorf("encoding a job for a worker process: %w", err)
	}
	result, err := runner.Run(ctx, worker.Request{
		Namespace: namespace, Kind: buildKind, Data: request, File: c.File,
		Stream: func() (io.Writer, error) {
			to, err := output()
			return splitter{to}, err
		},
	})
	if err != nil {
		return nil, explain(err)
	}
	var answer buildAnswer
	if err := json.Unmarshal(result, &answer); err != nil {
		return nil, fmt.Errorf("decoding the answer of a worker process: %w", err)
	}
	switch {
	case answer.Exceeded != "":
		return nil, fetch.Errorf(fetch.LimitExceeded, "the catalog is refused: %s", answer.Exceeded)
	case answer.Invalid != "":
		return nil, fetch.Errorf(fetch.InvalidContent, "the catalog is invalid: %s", answer.Invalid)
	}
	return index.Decode(answer.Index)
}

// Summarize is index.Index.Summarize in a worker process. Lean is open for reading only. It returns the index with the problems
// that were found.
func Summarize(ctx context.Context, runner Runner, namespace string, x *index.Index, lean *os.File, output func() (io.Writer, error)) (*index.Index, error) {
	encoded, err := x.Encode()
	if err != nil {
		return nil, err
	}
	result, err := runner.Run(ctx, worker.Request{Namespace: namespace, Kind: summarizeKind, Data: encoded, File: lean, Stream: output})
	if err != nil {
		return nil, explain(err)
	}
	var answer summarizeAnswer
	if err := json.Unmarshal(result, &answer); err != nil {
		return nil, fmt.Errorf("decoding the answer of a worker process: %w", err)
	}
	return index.Decode(answer.Index)
}

// explain gives a reason to the limits of a worker process that depend on the catalog only.
func explain(err error) error {
	var limit *worker.LimitError
	if errors.As(err, &limit) && limit.Limit != worker.LimitTime {
		return fetch.Errorf(fetch.LimitExceeded, "indexing the catalog %w", err)
	}
	return err
}

// Parts of the stream begin with the file that they belong to.
const (
	toAll  = 'a'
	toLean = 'l'
)

// splitter writes the parts of a stream to their files.
type splitter struct{ to Output }

// Write implements io.Writer.
func (s splitter) Write(part []byte) (int, error) {
	if len(part) == 0 {
		return 0, protocol.ErrInvalid
	}
	to := s.to.All
	switch part[0] {
	case toAll:
	case toLean:
		to = s.to.Lean
	default:
		return 0, protocol.ErrInvalid
	}
	n, err := to.Write(part[1:])
	return n + 1, err
}

// sender sends what is written as parts for one file.
type sender struct {
	in   child.Input
	mark []byte // what parts begin with
}

// Write implements io.Writer.
func (s sender) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n := min(len(p)-written, protocol.MaxChunk-len(s.mark))
		part := append(bytes.Clone(s.mark), p[written:written+n]...)
		if err := s.in.Send(part); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// sendBytes is how much is sent at once.
const sendBytes = 64 << 10

// build is the job.
func build(in child.Input) ([]byte, error) {
	var request buildRequest
	if err := json.Unmarshal(in.Data, &request); err != nil {
		return nil, fmt.Errorf("decoding a job: %w", err)
	}
	files, err := packed.New(in.File, request.Files)
	if err != nil {
		return nil, err
	}
	all := bufio.NewWriterSize(sender{in, []byte{toAll}}, sendBytes)
	lean := bufio.NewWriterSize(sender{in, []byte{toLean}}, sendBytes)
	x, err := index.Build(files, request.Root, request.Limits, all, lean)
	var answer buildAnswer
	switch {
	case errors.As(err, new(*fbc.LimitError)):
		answer.Exceeded = err.Error()
	case err != nil:
		answer.Invalid = err.Error()
	default:
		if err := errors.Join(all.Flush(), lean.Flush()); err != nil {
			return nil, err
		}
		if answer.Index, err = x.Encode(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(answer)
}

// summarize is the job.
func summarize(in child.Input) ([]byte, error) {
	x, err := index.Decode(in.Data)
	if err != nil {
		return nil, err
	}
	list := bufio.NewWriterSize(sender{in: in}, sendBytes)
	if err := errors.Join(x.Summarize(in.File, list), list.Flush()); err != nil {
		return nil, err
	}
	encoded, err := x.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(summarizeAnswer{Index: encoded})
}
