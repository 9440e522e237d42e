// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
)

// prune adds to the plan the removal of objects that the bundle does not contain any more.
// wanted are the entries of those that it contains, with their marks.
func (p *Plan) prune(in Input, wanted inventory.Inventory) {
	if in.Keeping {
		p.Inventory = in.Previous.Union(wanted)
		return
	}
	stages := deletions(in, in.Previous.Minus(wanted), false)
	var held pruning.Held
	stages = hold(&held, stages, in.Previous, func(id inventory.ID) bool { return len(in.Withheld[id]) > 0 })
	held.Keep(in.Withheld)
	count, of := in.counted(stages, wanted)
	if limit := in.Pruning.Limit; limit != nil && limit.Exceeded(count, of) {
		held.Exceeded = &pruning.Exceeded{Count: count, Of: of, Limit: *limit}
		stages = hold(&held, stages, in.Previous, func(inventory.ID) bool { return true })
	}
	if held.Len() > 0 {
		p.Held = &held
	}
	p.Inventory = in.Previous.Union(wanted).With(slices.Concat(in.remarked(wanted), in.leaving(stages), runOnce(wanted))...)
	p.PruneFirst, p.Prune = split(stages)
}

// counted is how many deletions count towards the limit, and of how many objects.
// A new object of the same kind in the same namespace reduces the count by one: it is a
// rename. RBAC objects do not count, nor do objects of a revision that was never healthy,
// and those with a deletion that was allowed before.
func (in Input) counted(stages []DeletionStage, wanted inventory.Inventory) (count, of int) {
	type place struct {
		schema.GroupKind
		namespace string
	}
	going := map[place]int{}
	for _, stage := range stages {
		for _, deletion := range stage.Deletions {
			if entry, _ := in.Previous.Get(deletion.ID); deletion.Deletes() && counts(entry) {
				going[place{deletion.GroupKind(), deletion.Namespace}]++
			}
		}
	}
	for _, entry := range wanted.Entries {
		if at := (place{entry.GroupKind(), entry.Namespace}); entry.Mark == inventory.Unproven && going[at] > 0 {
			going[at]--
		}
	}
	for _, number := range going {
		count += number
	}
	for _, entry := range in.Previous.Entries {
		if live, exists := in.Live[entry.ID]; exists && counts(entry) && live.Ours(in.Owner) {
			of++
		}
	}
	return count, of
}

func counts(entry inventory.Entry) bool { return entry.Mark == "" && !IsAccess(entry.ID) }

// hold moves those of some objects that would be deleted or released from the stages to the held ones,
// unless that was allowed before.
func hold(h *pruning.Held, stages []DeletionStage, previous inventory.Inventory, some func(inventory.ID) bool) []DeletionStage {
	var left []DeletionStage
	for _, stage := range stages {
		stage.Deletions = slices.DeleteFunc(slices.Clone(stage.Deletions), func(deletion Deletion) bool {
			entry, _ := previous.Get(deletion.ID)
			held := some(deletion.ID) && entry.Mark != inventory.Leaving && !deletion.RunOnce && (deletion.Deletes() || deletion.How == Release)
			if held {
				h.Objects = append(h.Objects, deletion.ID)
			}
			return held
		})
		if len(stage.Deletions) > 0 {
			left = append(left, stage)
		}
	}
	slices.SortFunc(h.Objects, inventory.ID.Compare)
	return left
}

// leaving are the entries of the objects that are deleted, marked so that they are not counted
// again while that takes time.
func (in Input) leaving(stages []DeletionStage) []inventory.Entry {
	var marked []inventory.Entry
	for _, stage := range stages {
		for _, deletion := range stage.Deletions {
			if entry, _ := in.Previous.Get(deletion.ID); deletion.Deletes() && !deletion.RunOnce {
				entry.Mark = inventory.Leaving
				marked = append(marked, entry)
			}
		}
	}
	return marked
}

// remarked are the entries of objects that came back into the bundle before they were deleted.
func (in Input) remarked(wanted inventory.Inventory) []inventory.Entry {
	var back []inventory.Entry
	for _, entry := range in.Previous.Entries {
		if entry.Mark == inventory.Leaving && wanted.Has(entry.ID) {
			entry.Mark = ""
			back = append(back, entry)
		}
	}
	return back
}

// runOnce are the entries of hooks, with their marks restored.
func runOnce(wanted inventory.Inventory) []inventory.Entry {
	return slices.DeleteFunc(slices.Clone(wanted.Entries), func(entry inventory.Entry) bool { return entry.Mark != inventory.RunOnce })
}

// split separates the deletions before the apply from those after the health check.
func split(stages []DeletionStage) (first, after []DeletionStage) {
	for _, stage := range stages {
		early, late := stage, stage
		early.Deletions, late.Deletions = nil, nil
		for _, deletion := range stage.Deletions {
			if deletion.First {
				early.Deletions = append(early.Deletions, deletion)
			} else {
				late.Deletions = append(late.Deletions, deletion)
			}
		}
		if len(early.Deletions) > 0 {
			first = append(first, early)
		}
		if len(late.Deletions) > 0 {
			after = append(after, late)
		}
	}
	return first, after
}
