// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// failure is why a step did not do its work, with what that means for the
// conditions and the next attempt.
type failure struct {
	// reason is one of the reasons of the API.
	reason string
	// err says what happened, to which object, and what to do.
	err error
	// stalled: retrying cannot help until somebody changes something.
	stalled bool
	// waiting: nothing is wrong yet; what is waited for wakes the deployment.
	waiting bool
	// woken: an event tells when it is over, so that nobody has to look before the interval.
	woken bool
}

func (f failure) Error() string { return f.err.Error() }

func (f failure) Unwrap() error { return f.err }

// judge gives the failure behind an error of a step; errors of no known kind,
// such as those of an unreachable API server, are retried.
func judge(err error) failure {
	var known failure
	if errors.As(err, &known) {
		return known
	}
	var failed *step.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return failure{reason: v1alpha1.ReasonFailed, err: err}
}
