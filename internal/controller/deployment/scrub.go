// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/scrub"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/spec"
)

// cleaner returns the cleaner for the messages of a deployment. After a process start it reads the Secrets here: a removal, or
// drift correction while the source is missing, runs without the step that reads the inputs.
func (r *Reconciler) cleaner(ctx context.Context, of *stage.Subject, access stage.Access) scrub.Cleaner {
	key := of.Key()
	secret := slices.DeleteFunc(spec.Inputs(of.Object), func(i spec.Input) bool { return i.Kind != spec.SecretKind })
	if len(secret) > 0 && !r.scrubs.Knows(key) && access.Local != nil {
		reader := resolve.InputReader{Client: access.Local, Namespace: of.Object.Namespace, Needed: secret}
		if contents, _, err := reader.Read(ctx); err == nil {
			r.scrubs.Learn(of.Object, secret, contents)
		}
	}
	return scrub.Cleaner{Scrubber: r.scrubs.Find(key), Withholds: len(secret) > 0 && !r.scrubs.Knows(key)}
}

// scrub cleans all messages of a reconcile before they are compared with those in the status, so that they stay stable. It
// returns the cleaned failure.
func (r *Reconciler) scrub(ctx context.Context, s *state, err error) error {
	cleaner := r.cleaner(ctx, &s.Subject, s.resolved.Access)
	s.scrub(cleaner)
	if s.kept != nil {
		s.kept.scrub(cleaner)
	}
	s.keepErr = cleanFailure(cleaner, s.keepErr)
	return cleanFailure(cleaner, err)
}

// cleanFailure cleans the message of a failure. Up to the step that reads the inputs nothing is written, so no answer
// contains their values.
func cleanFailure(cleaner scrub.Cleaner, err error) error {
	if err != nil && !isAfter(err, stage.StepInputs) {
		cleaner.Withholds = false
	}
	return cleaner.Failure(err)
}

func (s *state) scrub(cleaner scrub.Cleaner) {
	all := func(texts []string) {
		for i := range texts {
			texts[i] = cleaner.Text(texts[i])
		}
	}
	all(s.rendered.Warnings)
	all(s.decided.Warnings)
	all(s.delivered.Warnings)
	all(s.delivered.LeftOut)
	all(s.decided.LeftOut)
	all(s.decided.Drift.Found)
	all(s.delivered.Drift.Found)
	s.delivered.WaitsFor, s.delivered.Hooks.Waits = cleaner.Text(s.delivered.WaitsFor), cleaner.Text(s.delivered.Hooks.Waits)
	if s.settled.Health != nil {
		for i := range s.settled.Health.Unhealthy {
			s.settled.Health.Unhealthy[i].Message = cleaner.Text(s.settled.Health.Unhealthy[i].Message)
		}
	}
	if s.decided.Plan != nil {
		all(s.decided.Plan.Warnings)
	}
	if s.delivered.Pruned != nil {
		all(s.delivered.Pruned.Notes)
	}
	if s.delivered.Removed != nil {
		all(s.delivered.Removed.Notes)
	}
	for _, result := range []*apply.Result{s.delivered.Applied, s.delivered.Repaired.Result()} {
		if result != nil {
			all(result.Warnings)
		}
	}
	if s.decided.ApprovalState != nil {
		all(s.decided.ApprovalState.Asks)
	}
}
