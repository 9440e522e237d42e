// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// How an object of the inventory that is not desired any more is removed.
type How string

const (
	// Delete it.
	Delete How = "Delete"
	// DeleteEmpty: delete the namespace when nothing else lives in it, else Release it.
	DeleteEmpty How = "DeleteEmpty"
	// DeleteUnused: delete the CRD when no resource of its kind is left, else Release it.
	DeleteUnused How = "DeleteUnused"
	// Release: keep it, labelled as orphaned, and drop our ownership.
	Release How = "Release"
	// Forget: it is gone, or not ours; only the inventory lists it.
	Forget How = "Forget"
	// Await: it is being deleted already, or its kind is not known to be gone.
	Await How = "Await"
	// Keep: its state is unknown now; it stays in the inventory.
	Keep How = "Keep"
)

// Deletion is the action for one object of the inventory, and why.
type Deletion struct {
	inventory.ID
	Kind
	How    How
	Reason string
	Note   string         // why it is left alone on purpose; mostly empty
	Live   ownership.Live // zero for Forget and Keep
	// First: it is removed before the rest of the plan is applied, when the spec or its annotation says so.
	First bool
	// Whole: it is released with everything else, so that the objects that serve it stay.
	Whole bool
	// RunOnce: it is the remaining object of a hook.
	RunOnce bool
}

// Deletes tells whether the object may be deleted.
func (d Deletion) Deletes() bool {
	return d.How == Delete || d.How == DeleteEmpty || d.How == DeleteUnused
}

// DeletionStage is a set of deletions that may run in parallel.
type DeletionStage struct {
	Name      string
	Deletions []Deletion
	// Awaited: later stages wait until all of this is gone, because it may need their objects:
	// custom resources need their operator, CRDs a conversion webhook,
	// and a higher phase a lower one.
	Awaited bool
}

// Removal plans the removal of everything that the inventory lists. Of the
// Input it reads Owner, Previous, Live, Unreadable, Unconfirmed, Kinds and Pruning. It is called again
// at every attempt; when no stage is left, the removal is done.
func Removal(in Input) []DeletionStage {
	return deletions(in, in.Previous, true)
}

// deletions decides about each entry, and sorts the results into the order of deleting.
func deletions(in Input, entries inventory.Inventory, removal bool) []DeletionStage {
	byPlace := map[deletionPlace][]Deletion{}
	lowest := ownership.FarthestPhase
	for _, entry := range entries.Entries {
		kind := in.Kinds[entry.GroupKind()]
		if kind.Definition == "" && in.Previous.Has(crds.IDOfCRD(kind.Resource.GroupResource())) {
			kind.Definition = kind.Resource.GroupResource().String()
		}
		deletion := in.decideDeletion(entry, removal)
		deletion.ID = entry.ID
		deletion.Kind = kind
		deletion.RunOnce = entry.Mark == inventory.RunOnce
		stage := stageOf(entry.ID, kind)
		if _, unconfirmed := in.Unconfirmed[entry.ID]; unconfirmed {
			stage = stageCustom // the objects that serve it stay until it is known to be gone
		}
		at := deletionPlaceOf(stage, deletion.Live.Phase)
		byPlace[at] = append(byPlace[at], deletion)
		lowest = min(lowest, deletion.Live.Phase)
	}
	var stages []DeletionStage
	for _, at := range slices.SortedFunc(maps.Keys(byPlace), deletionPlace.compare) {
		stage := DeletionStage{Name: at.stage, Deletions: byPlace[at], Awaited: at.stage == stageCustom || at.stage == stageDefinitions || at.phase > lowest}
		if at.phase > lowest {
			stage.Name = fmt.Sprintf("%s of phase %d", at.stage, at.phase)
		}
		stages = append(stages, stage)
	}
	return stages
}

// deletionPlace is the position of an object in the order of deleting.
type deletionPlace struct {
	stage string
	phase int
}

// deletionPlaceOf: webhooks, CRDs and namespaces are deleted regardless of phases, because
// those of all phases block later deletions, or are blocked by them.
func deletionPlaceOf(stage string, phase int) deletionPlace {
	switch stage {
	case stageAdmission, stageDefinitions, stageNamespaces:
		phase = -ownership.FarthestPhase
	}
	return deletionPlace{stage: stage, phase: phase}
}

// compare orders by stage, and in a stage the highest phase first. Workloads and the stages beside
// them are deleted together, phase by phase.
func (p deletionPlace) compare(other deletionPlace) int {
	return cmp.Or(cmp.Compare(p.band(), other.band()), cmp.Compare(other.phase, p.phase),
		cmp.Compare(slices.Index(deleteOrder, p.stage), slices.Index(deleteOrder, other.stage)))
}

func (p deletionPlace) band() int {
	if p.stage == stageResources {
		return slices.Index(deleteOrder, stageWorkloads)
	}
	return slices.Index(deleteOrder, p.stage)
}

// decideDeletion: the first line that holds decides.
//
//	cannot be read              Keep    a failed read deletes nothing
//	its kind may be gone        Await   until that is confirmed
//	does not exist              Forget
//	belongs to another owner    Forget
//	never confirmed, not ours   Forget  a planned object that another client created
//	is being deleted, and all   Forget  it cannot be kept any more
//	is to be kept
//	is being deleted            Await
//	Namespace that demands approval Release
//	kept, by spec or annotation Release
//	CRD, asked to go            DeleteUnused
//	CRD                         Release decision 11: its resources are not ours to destroy
//	Namespace                   DeleteEmpty
//	else                        Delete
func (in Input) decideDeletion(entry inventory.Entry, removal bool) Deletion {
	if why, found := in.Unreadable[entry.ID]; found {
		return Deletion{How: Keep, Reason: why}
	}
	if why, found := in.Unconfirmed[entry.ID]; found {
		return Deletion{How: Await, Reason: why}
	}
	live, exists := in.Live[entry.ID]
	switch {
	case !exists:
		return Deletion{How: Forget, Reason: "does not exist"}
	case !live.Ours(in.Owner):
		note := "is left alone: it " + live.Holder(in.Owner)
		return Deletion{How: Forget, Reason: note, Note: note}
	case !entry.Confirmed() && live.Fields.IsZero():
		note := "is left alone: this deployment never applied it"
		return Deletion{How: Forget, Reason: note, Note: note}
	case live.Deleting && removal && in.Pruning.Orphan:
		note := "is not kept: it is being deleted already"
		return Deletion{How: Forget, Reason: note, Note: note}
	case live.Deleting:
		return Deletion{How: Await, Reason: ownership.BeingDeleted(live), Live: live, First: in.Pruning.RemovesFirst(live.Ending)}
	}
	deletion := in.ending(entry.ID, live, removal)
	deletion.Live, deletion.First = live, in.Pruning.RemovesFirst(live.Ending)
	return deletion
}

// ending is the part of decideDeletion about objects that we own.
func (in Input) ending(id inventory.ID, live ownership.Live, removal bool) Deletion {
	kept := in.Pruning.Kept(removal, live.Ending)
	switch {
	case live.GuardedNamespace(id) != "":
		return Deletion{How: Release, Reason: "is kept for its label " + live.GuardedNamespace(id) + ", which no bundle removes", Whole: removal && in.Pruning.Orphan}
	case kept != "":
		return Deletion{How: Release, Reason: kept, Whole: removal && in.Pruning.Orphan}
	case crds.IsCRD(id) && in.Pruning.Definitions:
		return Deletion{How: DeleteUnused, Reason: "is deleted when no resource of its kind is left"}
	case crds.IsCRD(id):
		return Deletion{How: Release, Reason: "is kept with the resources of its kind"}
	case ownership.IsNamespace(id):
		return Deletion{How: DeleteEmpty, Reason: "is deleted when nothing else lives in it"}
	}
	return Deletion{How: Delete}
}
