// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/convert"
)

// snapshot is what a deployment applied last. It serves to correct drift of the running
// revision while a newer one cannot be fetched, converted or planned, and tells an
// upgrade which fields the deployment owned.
type snapshot struct {
	// Revision of the artifact.
	Revision string `json:"revision"`
	// Target is the cluster that holds the objects.
	Target string `json:"target"`
	// Objects as they were applied, without what certify adds.
	Objects []*unstructured.Unstructured `json:"objects"`
	// Certificates that the objects mount and trust; absent in old snapshots.
	Certificates []convert.Certificate `json:"certificates,omitempty"`
	// Hooks of the revision.
	Hooks []plan.Hook `json:"hooks,omitempty"`
	// Begun are objects of newer plans, some of which may have been written.
	Begun []begunObject `json:"begun,omitempty"`
}

// lastFields returns an object with all the fields that this deployment owned when it
// was applied last; nil if it was not applied. Fields that certify adds are included
// with any value, since they are issued again. The CA bundle of an object that trusts
// none of the certificates, then or now, is not.
func (s *state) lastFields(snapshots *lastapplied.Snapshots, id inventory.ID) *unstructured.Unstructured {
	if s.rendered.issued != nil && s.rendered.issued.secrets[id] != nil {
		return s.rendered.issued.secrets[id]
	}
	last := s.lastApplied(snapshots, id)
	if last == nil || !certificate.Trusts(last, requests(s.snapshot.wanted)) && !s.trustsNow(id) {
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

// lastApplied finds an object of the snapshot; nil when there is none.
func (s *state) lastApplied(snapshots *lastapplied.Snapshots, id inventory.ID) *unstructured.Unstructured {
	s.snapshot.once.Do(func() {
		last, _, err := readSnapshot(snapshots, string(s.object.UID))
		if err != nil {
			return // without it, a field of another field manager is reported instead of reclaimed
		}
		s.snapshot.wanted = last.Certificates
		s.readBegun(last.Begun)
		s.snapshot.objects = make(map[inventory.ID]*unstructured.Unstructured, len(last.Objects))
		for _, object := range last.Objects {
			s.snapshot.objects[inventory.IDOf(object)] = object
		}
	})
	return s.snapshot.objects[id]
}

// readSnapshot reads the snapshot of a deployment; applied tells that a revision was
// applied completely.
func readSnapshot(snapshots *lastapplied.Snapshots, uid string) (last snapshot, applied bool, err error) {
	data, found, err := snapshots.Load(uid)
	if err != nil || !found {
		return snapshot{}, false, err
	}
	if err := json.Unmarshal(data, &last); err != nil {
		return snapshot{}, false, fmt.Errorf("reading the objects that were applied last: %w", err)
	}
	return last, last.Revision != "", nil
}

// inventory lists the objects as planned: the next comparison with the cluster finds
// out whether they still exist and belong to the deployment.
func (s snapshot) inventory(authority inventory.ID) inventory.Inventory {
	entries := make([]inventory.Entry, 0, len(s.Objects))
	for _, id := range certificateIDs(authority, s.Certificates) {
		entries = append(entries, inventory.Entry{ID: id, Version: secrets.Version})
	}
	for _, object := range s.Objects {
		entries = append(entries, inventory.Entry{ID: inventory.IDOf(object), Version: object.GroupVersionKind().Version})
	}
	for _, begun := range s.Begun {
		entries = append(entries, inventory.Entry{ID: inventory.IDOf(begun.Object), Version: begun.Object.GroupVersionKind().Version})
	}
	return inventory.New(s.Target, entries...)
}

// saveSnapshot stores the objects of the plan as they were applied, if they are not
// stored already. The Secrets of certificates stay on the cluster only.
func (r *Reconciler) saveSnapshot(s *state) error {
	objects, err := s.bare(s.decided.plan.Objects())
	if err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	data, err := json.Marshal(snapshot{Revision: s.revision(), Target: s.listed.inventory.Target, Objects: objects, Certificates: s.rendered.wanted, Hooks: s.rendered.hooks})
	if err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	kept, found, err := r.Snapshots.Load(string(s.object.UID))
	if err == nil && found && string(kept) == string(data) {
		return nil
	}
	if err := r.Snapshots.Save(string(s.object.UID), data); err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	return nil
}
