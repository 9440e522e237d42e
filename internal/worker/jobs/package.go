// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"io"
	"math"
	"os"

	"github.com/satchel-dev/satchel/internal/catalog/lean"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
)

type parseRequest struct{ Name string }

// ParsePackage is lean.Parse in a worker process, on the CPU budget of a namespace. The file is open for reading only. A package
// that exceeds a limit of the process is left out.
func ParsePackage(ctx context.Context, runner Runner, namespace, name string, blobs *os.File) (lean.Parsed, error) {
	var parsed lean.Parsed
	err := Run(ctx, runner, namespace, parseKind, blobs, parseRequest{Name: name}, &parsed)
	var limit *worker.LimitError
	if errors.As(err, &limit) && limit.Limit != worker.LimitTime {
		return lean.Parsed{Problem: "reading it " + limit.Error()}, nil
	}
	return parsed, err
}

// parsePackage is the job.
func parsePackage(in child.Input) ([]byte, error) {
	return Handle(in, func(request parseRequest) (lean.Parsed, error) {
		return lean.Parse(request.Name, io.NewSectionReader(in.File, 0, math.MaxInt64))
	})
}
