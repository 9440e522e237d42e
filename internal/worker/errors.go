// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnavailable means that no worker process could be started, for example because the
// machine has no process, memory or file descriptor left. It is never the input's fault:
// try again later.
var ErrUnavailable = errors.New("no worker process can be started")

// ErrClosed means that the Pool was closed.
var ErrClosed = errors.New("the pool of worker processes is closed")

// Limits of a job, as LimitError names them.
const (
	LimitCPU    = "cpu"
	LimitMemory = "memory"
	LimitOutput = "output"
	LimitTime   = "time"
)

// LimitError means that a job exceeded a limit, and was ended by it.
//
// Output and memory depend on the input only. CPU seconds and time vary by a factor of two
// with the machine's load: after those, the caller retries the same input once, later, and
// then only when the input or the limits change.
type LimitError struct {
	// Limit is one of the constants above.
	Limit string
	// Budget is the limit's value in messages, such as "20s" or "512 MiB".
	Budget string
}

func (e *LimitError) Error() string {
	switch e.Limit {
	case LimitCPU:
		return fmt.Sprintf("exceeded the limit of %s CPU time", e.Budget)
	case LimitTime:
		return fmt.Sprintf("exceeded the limit of %s time", e.Budget)
	default:
		return fmt.Sprintf("exceeded the limit of %s %s", e.Budget, e.Limit)
	}
}

// BudgetError means that the namespace has used its CPU time of the window; the job was
// not started.
type BudgetError struct {
	// Budget is the CPU time that a namespace has in a Window.
	Budget, Window time.Duration
	// RetryAfter is when the namespace has CPU time again.
	RetryAfter time.Duration
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the namespace has used its %s of CPU time in %s; the next attempt is possible in %s",
		e.Budget, e.Window, e.RetryAfter.Round(time.Second))
}

// CrashError means that two worker processes ended without a result and without having
// exceeded a limit: by a bug in a library, or by a signal of another process. The caller tries again, later.
type CrashError struct {
	// End is how the second one ended. It contains no input.
	End string
}

func (e *CrashError) Error() string {
	return "two worker processes ended without a result, the second by " + e.End
}

// JobError is what a handler returned as its error.
type JobError struct{ Kind, Message string }

func (e *JobError) Error() string { return "worker job " + e.Kind + ": " + e.Message }
