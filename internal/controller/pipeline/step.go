// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Outcome says whether the following steps run.
type Outcome int

const (
	// Continue runs the next step.
	Continue Outcome = iota
	// Stop ends the list without an error.
	Stop
)

// Step is one named part of a reconcile. Run first checks whether it is needed, and
// records its results in the state.
type Step[S any] struct {
	// Name is short, lower-case and stable.
	Name string
	// Run does the work.
	Run func(ctx context.Context, state S) (Outcome, error)
}

// Observer receives the result of each step.
type Observer func(step string, took time.Duration, err error)

// StepError is the failure of one step.
type StepError struct {
	// Step that failed.
	Step string
	// Err is what it returned.
	Err error
}

// Error starts with the name of the step.
func (e *StepError) Error() string { return fmt.Sprintf("%s: %v", e.Step, e.Err) }

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// FailedStep is the name of the step that an error of Run comes from, or "".
func FailedStep(err error) string {
	var failed *StepError
	if errors.As(err, &failed) {
		return failed.Step
	}
	return ""
}

// Run runs the steps in order until one stops or fails. The error is an *Error.
// A cancelled context ends it between two steps.
func Run[S any](ctx context.Context, steps []Step[S], state S, observe Observer) error {
	for _, current := range steps {
		if err := context.Cause(ctx); err != nil {
			return &StepError{Step: current.Name, Err: err}
		}
		outcome, err := runOne(ctx, current, state, observe)
		if err != nil {
			return &StepError{Step: current.Name, Err: err}
		}
		if outcome == Stop {
			return nil
		}
	}
	return nil
}

func runOne[S any](ctx context.Context, current Step[S], state S, observe Observer) (Outcome, error) {
	log := ctrl.LoggerFrom(ctx).WithValues("step", current.Name)
	start := time.Now()
	outcome, err := current.Run(ctrl.LoggerInto(ctx, log), state)
	took := time.Since(start)
	if observe != nil {
		observe(current.Name, took, err)
	}
	log.V(1).Info("step ended", "took", took, "failed", err != nil)
	return outcome, err
}
