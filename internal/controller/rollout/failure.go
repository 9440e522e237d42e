// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/fleet"
)

// failure is why a step failed or waits.
type failure struct {
	// reason is one of the reasons of the API.
	reason string
	err    error
	// stalled: retrying cannot help until the user changes something.
	stalled bool
}

// Error implements error.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// stalledBy is a failure that only a user can end.
func stalledBy(reason, format string, args ...any) *failure {
	return &failure{reason: reason, err: fmt.Errorf(format, args...), stalled: true}
}

// waitsFor is a failure that ends without a change of the rollout.
func waitsFor(reason, format string, args ...any) *failure {
	return &failure{reason: reason, err: fmt.Errorf(format, args...)}
}

// failureOf is the failure behind an error of a step; errors of unknown kinds are retried.
func failureOf(err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	var unlisted *fleet.Error
	if errors.As(err, &unlisted) {
		return &failure{reason: unlisted.Reason, err: unlisted, stalled: unlisted.Stalled}
	}
	var failed *pipeline.StepError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return &failure{reason: v1alpha1.ReasonFailed, err: err}
}
