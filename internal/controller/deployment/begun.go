// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
)

// beginPlan records the planned writes before the first one: in the inventory by hashes,
// so that the same plan recognizes writes of a process that died, and in the cache by
// content, so that a later revision knows which fields this deployment owned.
func (r *Reconciler) beginPlan(s *state) error {
	s.decided.plan.Begin()
	if s.keeping {
		return nil
	}
	planned, err := s.begunObjects()
	if err == nil && len(planned) > 0 {
		err = snapshot.KeepBegun(r.Snapshots, string(s.object.UID), planned, s.listed.inventory, s.snapshot)
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
	planned := s.decided.plan.Beginning()
	for _, object := range planned {
		hashes[object.ID] = object.Rendered.String()
	}
	objects, err := s.bare(planned)
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
	objects, err := s.bare(s.decided.plan.Objects())
	if err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	last := snapshot.Snapshot{Revision: s.revision(), Target: s.listed.inventory.Target, Objects: objects, Certificates: s.rendered.wanted, Hooks: s.rendered.hooks}
	if err := snapshot.Save(r.Snapshots, string(s.object.UID), last); err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	return nil
}

// lastFields returns an object with all the fields that this deployment owned when it
// was applied last; nil if it was not applied. Fields that certify adds are included
// with any value, since they are issued again. The CA bundle of an object that trusts
// none of the certificates, then or now, is not.
func (s *state) lastFields(id inventory.ID) *unstructured.Unstructured {
	if secret := s.rendered.issued.Secret(id); secret != nil {
		return secret
	}
	last, trusted := s.snapshot.Object(id)
	if last == nil || !trusted && !s.trustsNow(id) {
		return last
	}
	return certificate.Inject(last, nil)
}

// trustsNow tells whether an object of the revision trusts one of the certificates: its
// CA bundle is taken from its former owner, such as cert-manager.
func (s *state) trustsNow(id inventory.ID) bool {
	return slices.ContainsFunc(s.rendered.desired, func(object *unstructured.Unstructured) bool {
		return inventory.IDOf(object) == id && s.trusts(object)
	})
}

// earlier returns the kept contents that may have been written to an object: those of the
// last apply, and those begun since with the hash of the inventory entry.
func (s *state) earlier(entry inventory.Entry) []*unstructured.Unstructured {
	var contents []*unstructured.Unstructured
	if last := s.lastFields(entry.ID); last != nil {
		contents = append(contents, last)
	}
	return append(contents, s.snapshot.BegunAs(entry)...)
}
