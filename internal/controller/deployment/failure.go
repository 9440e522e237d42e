// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// failure is why a step failed or waits, with the consequences for the conditions and
// the next attempt.
type failure struct {
	// reason is one of the reasons of the API.
	reason string
	// err says what happened, to which object, and what to do.
	err error
	// stalled: retrying cannot help until the user changes something.
	stalled bool
	// waiting: not an error; the awaited event wakes the deployment.
	waiting bool
	// woken: an event wakes the deployment when it is over, so that no retry is needed
	// before the interval.
	woken bool
	// after is the pause before the retry, if known; 0 for the backoff of failures.
	after time.Duration
}

func (f failure) Error() string { return f.err.Error() }

func (f failure) Unwrap() error { return f.err }

// judge returns the failure behind an error of a step; errors of unknown kinds, such as
// those of an unreachable API server, are retried.
func judge(err error) failure {
	var known failure
	var costly *pattern.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &costly):
		return failure{reason: v1alpha1.ReasonPlanRefused, stalled: true, err: err}
	}
	var failed *pipeline.StepError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return failure{reason: v1alpha1.ReasonFailed, err: err}
}
