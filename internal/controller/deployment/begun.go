// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
)

// beginPlan records the planned writes before the first one: in the inventory by hashes,
// so that the same plan recognizes writes of a process that died, and in the cache by
// content, so that a later revision knows which fields this deployment owned.
func (r *Reconciler) beginPlan(s *state) error {
	s.decided.Plan.Begin()
	if s.Keeping {
		return nil
	}
	planned, err := s.begunObjects()
	if err == nil && len(planned) > 0 {
		err = snapshot.KeepBegun(r.Snapshots, string(s.Object.UID), planned, s.listed.Inventory, s.Snapshot)
	}
	if err != nil {
		return fmt.Errorf("keeping the planned objects: %w", err)
	}
	return nil
}

// begunObjects are the objects that the plan is about to write, without the Secrets of
// certificates.
func (s *state) begunObjects() ([]snapshot.Begun, error) {
	hashes := map[inventory.ID]string{}
	planned := s.decided.Plan.Beginning()
	for _, object := range planned {
		hashes[object.ID] = object.Rendered.String()
	}
	objects, err := s.rendered.Bare(&s.Subject, planned)
	if err != nil {
		return nil, err
	}
	begun := make([]snapshot.Begun, 0, len(objects))
	for _, object := range objects {
		begun = append(begun, snapshot.Begun{Rendered: hashes[inventory.IDOf(object)], Object: object})
	}
	return begun, nil
}

// saveSnapshot stores the objects of the plan as they were applied, if they are not
// stored already. The Secrets of certificates stay on the cluster only.
func (r *Reconciler) saveSnapshot(s *state) error {
	objects, err := s.rendered.Bare(&s.Subject, s.decided.Plan.Objects())
	if err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	last := snapshot.Snapshot{Revision: s.resolved.Revision(), Target: s.listed.Inventory.Target, Objects: objects, Certificates: s.rendered.Wanted, Hooks: s.rendered.Hooks}
	if err := snapshot.Save(r.Snapshots, string(s.Object.UID), last); err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	return nil
}
