// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/scrub"
	"github.com/satchel-dev/satchel/internal/spec"
)

// cleaner returns the cleaner for the messages of a deployment. After a process start it reads the Secrets here: a removal, or
// drift correction while the source is missing, runs without the step that reads the inputs.
func (r *Reconciler) cleaner(ctx context.Context, s *state) scrub.Cleaner {
	key := client.ObjectKeyFromObject(s.object)
	secret := slices.DeleteFunc(spec.Inputs(s.object), func(i spec.Input) bool { return i.Kind != spec.SecretKind })
	if len(secret) > 0 && !r.scrubs.Knows(key) && s.resolved.access.Local != nil {
		reader := resolve.InputReader{Client: s.resolved.access.Local, Namespace: s.object.Namespace, Needed: secret}
		if contents, _, err := reader.Read(ctx); err == nil {
			r.scrubs.Learn(s.object, secret, contents)
		}
	}
	return scrub.Cleaner{Scrubber: r.scrubs.Find(key), Withholds: len(secret) > 0 && !r.scrubs.Knows(key)}
}

// scrub cleans all messages of a reconcile before they are compared with those in the status, so that they stay stable. It
// returns the cleaned failure.
func (r *Reconciler) scrub(ctx context.Context, s *state, err error) error {
	cleaner := r.cleaner(ctx, s)
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
	if err != nil && !isAfter(err, stepInputs) {
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
	all(s.warnings)
	all(s.decided.leftOut)
	all(s.decided.drift)
	s.delivered.waitsFor, s.settled.hookWaits = cleaner.Text(s.delivered.waitsFor), cleaner.Text(s.settled.hookWaits)
	if s.settled.health != nil {
		for i := range s.settled.health.Unhealthy {
			s.settled.health.Unhealthy[i].Message = cleaner.Text(s.settled.health.Unhealthy[i].Message)
		}
	}
	if s.decided.plan != nil {
		all(s.decided.plan.Warnings)
	}
	if s.delivered.pruned != nil {
		all(s.delivered.pruned.Notes)
	}
	if s.delivered.removed != nil {
		all(s.delivered.removed.Notes)
	}
	for _, result := range []*apply.Result{s.delivered.applied, s.delivered.repaired.result()} {
		if result != nil {
			all(result.Warnings)
		}
	}
	if s.decided.consent != nil {
		all(s.decided.consent.Asks)
	}
}
