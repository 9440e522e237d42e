// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// beginPlan records the planned writes before the first one: in the inventory by hashes,
// so that the same plan recognizes writes of a process that died, and in the cache by
// content, so that a later revision knows which fields this deployment owned.
func (st *Stage) beginPlan(in *Input) error {
	in.Decided.Plan.Begin()
	uid := string(in.Object.UID)
	if in.Keeping {
		if err := snapshot.RecordBegun(st.Snapshots, uid, hashesOf(in.Decided.Plan.Beginning()), in.Listed.Inventory(), in.Snapshot); err != nil {
			return fmt.Errorf("keeping the begun objects: %w", err)
		}
		return nil
	}
	planned, err := in.begunObjects()
	if err == nil && len(planned) > 0 {
		err = snapshot.KeepBegun(st.Snapshots, uid, planned, in.Listed.Inventory(), in.Snapshot)
	}
	if err != nil {
		return fmt.Errorf("keeping the planned objects: %w", err)
	}
	return nil
}

// begunObjects are the objects that the plan is about to write, without the Secrets of
// certificates.
func (in *Input) begunObjects() ([]snapshot.Begun, error) {
	planned := in.Decided.Plan.Beginning()
	hashes := hashesOf(planned)
	objects, err := in.Rendered.Bare(in.Subject, planned)
	if err != nil {
		return nil, err
	}
	begun := make([]snapshot.Begun, 0, len(objects))
	for _, object := range objects {
		begun = append(begun, snapshot.Begun{Rendered: hashes[inventory.IDOf(object)], Object: object})
	}
	return begun, nil
}

func hashesOf(objects []plan.Object) map[inventory.ID]string {
	hashes := make(map[inventory.ID]string, len(objects))
	for _, object := range objects {
		hashes[object.ID] = object.Rendered.String()
	}
	return hashes
}

// KeepSnapshot stores a snapshot that was made again, with the objects as the plan of the applied revision has them, unless it left
// some out. Nor is it stored where hooks run or ran, and only the objects could be compared with what was applied: what is stored counts as
// applied, hooks included. It tells whether it did.
func (st *Stage) KeepSnapshot(in *Input, again snapshot.Snapshot) (kept bool, err error) {
	unknownHooks := in.Rendered.Unproven && (len(again.Hooks) > 0 || in.Object.Status.Hooks != nil)
	if in.Decided.Plan == nil || len(in.Decided.LeftOut) > 0 || unknownHooks {
		return false, nil
	}
	objects, err := in.Rendered.Bare(in.Subject, in.Decided.Plan.Objects())
	if err == nil {
		again.Replace(objects)
		err = snapshot.Save(st.Snapshots, string(in.Object.UID), again)
	}
	if err != nil {
		return false, fmt.Errorf("keeping the applied objects: %w", err)
	}
	return true, nil
}

// saveSnapshot stores the objects of the plan as they were applied, if they are not
// stored already. The Secrets of certificates stay on the cluster only.
func (st *Stage) saveSnapshot(in *Input) error {
	objects, err := in.Rendered.Bare(in.Subject, in.Decided.Plan.Objects())
	if err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	last := snapshot.Snapshot{Revision: in.Resolved.Revision(), Target: in.Listed.Current().Target(), Objects: objects, Certificates: in.Rendered.Wanted, Hooks: in.Rendered.Hooks}
	last.Files = in.Rendered.Files(objects, in.Decided.Plan.Held)
	if err := snapshot.Save(st.Snapshots, string(in.Object.UID), last); err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	return nil
}

// Begin records the plan in the status, which lists the objects of the inventory, previous and planned. Once that is stored,
// every object that is written is listed, also after a crash.
func (st *Stage) Begin(in *Input) error {
	if err := st.beginPlan(in); err != nil {
		return err
	}
	in.Delivered.Unbegun = stage.Unbegun{Executed: in.Object.Status.Internal.Executed, Encoded: in.Object.Status.Inventory, Inventory: in.Listed.Inventory(), Hooks: in.Stored.Status.Hooks, Catalog: in.Object.Status.Catalog.DeepCopy()}
	if err := in.Listed.Record(in.Subject, in.Delivered.Hooks.In(in.Decided.Plan.Inventory)); err != nil {
		return err
	}
	if !in.Keeping {
		in.Resolved.MarkInstalled(in.Subject)
		st.Approvals.Begin(in.Decided.ApprovalState, in.Object, in.Now)
	}
	return nil
}

// Unstored restores the status fields that Begin changed to what is stored, since they could not be: otherwise the status
// of the failure would contain them.
func (in *Input) Unstored() {
	status, stored := &in.Object.Status, &in.Stored.Status
	status.Inventory = stored.Inventory
	status.Internal.Executed = stored.Internal.Executed
	status.Hooks = stored.Hooks
	status.Catalog = stored.Catalog
}
