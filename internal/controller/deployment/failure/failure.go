// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// Error is why a step failed or waits, with the consequences for the conditions and
// the next attempt.
type Error struct {
	// Reason is one of the reasons of the API.
	Reason string
	// Err says what happened, to which object, and what to do.
	Err error
	// Stalled: retrying cannot help until the user changes something.
	Stalled bool
	// Waiting: not an error; the awaited event wakes the deployment.
	Waiting bool
	// Woken: an event wakes the deployment when it is over, so that no retry is needed
	// before the interval.
	Woken bool
	// After is the pause before the retry, if known; 0 for the backoff of failures.
	After time.Duration
}

func (f Error) Error() string { return f.Err.Error() }

func (f Error) Unwrap() error { return f.Err }

// Of returns the failure behind an error of a step; errors of unknown kinds, such as
// those of an unreachable API server, are retried.
func Of(err error) Error {
	var known Error
	var costly *pattern.Error
	var another *format.AnotherVersionError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &costly):
		return Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	case errors.As(err, &another):
		return Error{Reason: v1alpha1.ReasonWrittenByAnotherVersion, Err: err}
	}
	var failed *pipeline.StepError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return Error{Reason: v1alpha1.ReasonFailed, Err: err}
}

// InvalidExpression is the failure of an expression that the user has to correct.
func InvalidExpression(where string, err error) error {
	return Error{Reason: v1alpha1.ReasonInvalidExpression, Stalled: true, Err: fmt.Errorf("%s: %w: correct it", where, err)}
}
