// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// setPlan writes the summary of the plan to the status.
func setPlan(s *state) {
	if s.decided.Plan == nil {
		return
	}
	if was := s.Object.Status.Plan; s.decided.Plan.Quiet() && was != nil && was.Revision == s.resolved.Revision() {
		s.digested(was)
		return // the plan of this revision is more informative than an empty one
	}
	s.Object.Status.Plan = &v1alpha1.PlanStatus{
		Revision: s.resolved.Revision(),
		Create:   int32(s.decided.Plan.Count(plan.Create)),              //nolint:gosec // at most 25,000 objects
		Adopt:    int32(s.decided.Plan.Count(plan.Adopt)),               //nolint:gosec // at most 25,000 objects
		Recreate: int32(s.decided.Plan.Count(plan.Recreate)),            //nolint:gosec // at most 25,000 objects
		Update:   int32(s.decided.Plan.Count(plan.Update, plan.Repair)), //nolint:gosec // at most 25,000 objects
		Delete:   int32(s.decided.Plan.Deletions()),                     //nolint:gosec // at most 25,000 objects
		Summary:  s.decided.Plan.Summary(),
	}
	s.digested(s.Object.Status.Plan)
}

// digested adds the digests of the plan, where they are known.
func (s *state) digested(sum *v1alpha1.PlanStatus) {
	if c := s.decided.Consent; c != nil {
		sum.Digest, sum.Content = c.Digest, c.Content
		sum.Inputs, sum.Capabilities = s.resolved.Inputs.Digest, s.rendered.Capabilities
		if s.resolved.Inputs.Secret() {
			sum.Content = "" // a reader could test guesses of secret values against it
		}
	}
}

func setCounts(s *state) {
	looked := s
	if s.kept != nil {
		looked = s.kept
	}
	if looked.settled.Health == nil {
		return
	}
	s.Object.Status.Objects = &v1alpha1.ObjectCounts{
		Skipped:   int32(looked.note.Planned.Skipped),          //nolint:gosec // at most 25,000 objects
		Applied:   int32(looked.note.Health.Total),             //nolint:gosec // at most 25,000 objects
		Unhealthy: int32(len(looked.settled.Health.Unhealthy)), //nolint:gosec // at most 25,000 objects
	}
}

// setWarnings collects the warnings of the plan, which come first, of the conversion
// and of writes. They are kept as long as the objects: a comparison without writes
// yields none again.
func setWarnings(s *state) {
	news := slices.Concat(s.rendered.Warnings, s.decided.Warnings, s.delivered.Warnings)
	same := s.resolved.SameAsBefore(&s.Subject)
	switch {
	case !s.resolved.Due || len(s.rendered.Desired) == 0 || s.delivered.Applied != nil && same && !s.decided.Writes():
	case same:
		s.Object.Status.Warnings = ahead(s.planWarnings(), bounded(append(news, s.Before.Status.Warnings...)))
	default:
		s.Object.Status.Warnings = ahead(s.planWarnings(), bounded(news))
	}
}

// planWarnings are those of the plan, as the status shows them.
func (s *state) planWarnings() []string {
	if s.decided.Plan == nil {
		return nil
	}
	return bounded(s.decided.Plan.Warnings)
}

// ahead puts the first warnings before others, up to mostWarnings.
func ahead(first, others []string) []string {
	all := slices.Clone(first)
	for _, other := range others {
		if len(all) < mostWarnings && !slices.Contains(first, other) {
			all = append(all, other)
		}
	}
	return all
}

// mostWarnings bounds the warnings in a status.
const mostWarnings = 20

// bounded sorts warnings, drops duplicates and keeps up to mostWarnings.
func bounded(warnings []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(warnings)))
	if len(sorted) > mostWarnings {
		sorted = append(sorted[:mostWarnings-1:mostWarnings-1], fmt.Sprintf("and %d more", len(sorted)-mostWarnings+1))
	}
	for i := range sorted {
		sorted[i] = pipeline.Shorten(sorted[i], 512)
	}
	return sorted
}
