// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// setPlan writes the summary of the plan to the status.
func setPlan(in *Input) {
	if in.Decided.Plan == nil {
		if c := in.Decided.ApprovalState; c != nil { // a server that waits for an approval: nothing was planned there
			in.Object.Status.Plan = &v1alpha1.PlanStatus{Revision: in.Object.Status.Applied.Revision, Digest: c.Digest, Summary: strings.Join(c.Asks, "; ")}
		}
		return
	}
	if was := in.Object.Status.Plan; in.Decided.Plan.Quiet() && was != nil && was.Revision == in.Resolved.Revision() {
		in.digested(was)
		return // the plan of this revision is more informative than an empty one
	}
	in.Object.Status.Plan = &v1alpha1.PlanStatus{
		Revision: in.Resolved.Revision(),
		Create:   int32(in.Decided.Plan.Count(plan.Create)),              //nolint:gosec // at most 25,000 objects
		Adopt:    int32(in.Decided.Plan.Count(plan.Adopt)),               //nolint:gosec // at most 25,000 objects
		Recreate: int32(in.Decided.Plan.Count(plan.Recreate)),            //nolint:gosec // at most 25,000 objects
		Update:   int32(in.Decided.Plan.Count(plan.Update, plan.Repair)), //nolint:gosec // at most 25,000 objects
		Delete:   int32(in.Decided.Plan.Deletions()),                     //nolint:gosec // at most 25,000 objects
		Summary:  in.Resolved.PlanSummary(in.Decided.Plan.Summary()),
	}
	in.digested(in.Object.Status.Plan)
}

// digested adds the digests of the plan, where they are known.
func (in *Input) digested(sum *v1alpha1.PlanStatus) {
	if c := in.Decided.ApprovalState; c != nil {
		sum.Digest, sum.Content = c.Digest, in.Resolved.Inputs.Public(c.Content)
		sum.Inputs, sum.Capabilities = in.Resolved.Inputs.Digest, in.Rendered.Capabilities
	}
}

func setCounts(in *Input) {
	looked := in
	if in.Kept != nil {
		looked = in.Kept
	}
	if looked.Settled.Health == nil {
		return
	}
	in.Object.Status.Objects = &v1alpha1.ObjectCounts{
		Skipped:   int32(looked.Note.Planned.Skipped),          //nolint:gosec // at most 25,000 objects
		Applied:   int32(looked.Note.Health.Total),             //nolint:gosec // at most 25,000 objects
		Unhealthy: int32(len(looked.Settled.Health.Unhealthy)), //nolint:gosec // at most 25,000 objects
	}
}

// setWarnings collects the warnings of the plan, which come first, of the conversion
// and of writes. They are kept as long as the objects: a comparison without writes
// yields none again. Those of another revision or spec go with the first plan of a new one.
func setWarnings(in *Input) {
	news := slices.Concat(in.Rendered.Warnings, in.Decided.Warnings, in.Delivered.Warnings)
	if !in.Resolved.Due || len(in.Rendered.Desired) == 0 {
		return
	}
	if in.Resolved.PlannedBefore(in.Subject) {
		news = append(news, in.Before.Status.Warnings...)
	}
	in.Object.Status.Warnings = ahead(in.planWarnings(), bounded(news))
}

// planWarnings are those of the plan, as the status shows them.
func (in *Input) planWarnings() []string {
	if in.Decided.Plan == nil {
		return nil
	}
	return bounded(in.Decided.Plan.Warnings)
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

// mostSkippedNamed is how many skipped objects a message names.
const mostSkippedNamed = 5

// skippedText names the objects that a plan skips until their kinds are served; "" for
// none.
func skippedText(skipped []inventory.ID) string {
	if len(skipped) == 0 {
		return ""
	}
	named, more := skipped, ""
	if len(named) > mostSkippedNamed {
		named, more = named[:mostSkippedNamed], fmt.Sprintf(" and %d more", len(skipped)-mostSkippedNamed)
	}
	return fmt.Sprintf("; %d of spec.apply.optionalKinds left out until their kinds are served: %s%s", len(skipped), pipeline.JoinNames(named), more)
}
