// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// keepHook lists the object of a hook in the inventory.
func (in *Input) keepHook(run plan.HookRun) error {
	return in.noteHook(run.ID, &inventory.Entry{ID: run.ID, Version: run.Resource.Version, Mark: inventory.RunOnce})
}

// dropHook removes the object of a hook, which is gone, from the inventory.
func (in *Input) dropHook(id inventory.ID) error { return in.noteHook(id, nil) }

func (in *Input) noteHook(id inventory.ID, entry *inventory.Entry) error {
	if in.Progress.Entries == nil {
		in.Progress.Entries = map[inventory.ID]*inventory.Entry{}
	}
	in.Progress.Entries[id] = entry
	return in.Listed.Record(in.Subject, in.Progress.In(in.Listed.Inventory()))
}
