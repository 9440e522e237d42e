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
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// snapshot is what a deployment applied last: by it the running revision is kept
// from drifting while a newer one cannot be fetched, converted or planned, and
// an upgrade knows which fields were its own.
type snapshot struct {
	// Revision of the artifact.
	Revision string `json:"revision"`
	// Target is the cluster that holds the objects.
	Target string `json:"target"`
	// Objects as they were applied, but for what certify adds.
	Objects []*unstructured.Unstructured `json:"objects"`
	// Certificates that the objects mount and trust; none in snapshots of before
	// there were any.
	Certificates []convert.Certificate `json:"certificates,omitempty"`
	// Hooks of the revision.
	Hooks []plan.Hook `json:"hooks,omitempty"`
	// Begun are objects of newer plans, of which some may have been written.
	Begun []begunObject `json:"begun,omitempty"`
}

// lastFields gives an object with all the fields that were this deployment's when
// it was applied last; nil when it was not. What certify adds counts, whatever the
// value was: it is made anew. The bundle of an object that trusts none of the
// certificates, then or now, does not.
func (s *state) lastFields(snapshots *artifact.Snapshots, id inventory.ID) *unstructured.Unstructured {
	if s.issued != nil && s.issued.secrets[id] != nil {
		return s.issued.secrets[id]
	}
	last := s.lastApplied(snapshots, id)
	if last == nil || !certificate.Trusts(last, requests(s.lastWanted)) && !s.trustsNow(id) {
		return last
	}
	return certificate.Inject(last, nil)
}

// trustsNow tells whether an object of the revision trusts one of the certificates:
// its bundle is taken from whoever filled it in before, as cert-manager does.
func (s *state) trustsNow(id inventory.ID) bool {
	return slices.ContainsFunc(s.desired, func(object *unstructured.Unstructured) bool {
		return inventory.IDOf(object) == id && s.trusts(object)
	})
}

// lastApplied finds an object of the snapshot; nil when there is none.
func (s *state) lastApplied(snapshots *artifact.Snapshots, id inventory.ID) *unstructured.Unstructured {
	s.loadOnce.Do(func() {
		last, _, err := readSnapshot(snapshots, string(s.object.UID))
		if err != nil {
			return // without it, a field that somebody took is reported instead of taken back
		}
		s.lastWanted = last.Certificates
		s.readBegun(last.Begun)
		s.last = make(map[inventory.ID]*unstructured.Unstructured, len(last.Objects))
		for _, object := range last.Objects {
			s.last[inventory.IDOf(object)] = object
		}
	})
	return s.last[id]
}

// readSnapshot reads what is kept of a deployment; applied tells that a revision was
// applied as a whole.
func readSnapshot(snapshots *artifact.Snapshots, uid string) (last snapshot, applied bool, err error) {
	data, found, err := snapshots.Load(uid)
	if err != nil || !found {
		return snapshot{}, false, err
	}
	if err := json.Unmarshal(data, &last); err != nil {
		return snapshot{}, false, fmt.Errorf("reading the objects that were applied last: %w", err)
	}
	return last, last.Revision != "", nil
}

// inventory lists the objects as planned: whether they are still there, and
// ours, is for the next look at the cluster to say.
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

// saveSnapshot keeps the objects of the plan, complete as they were applied, when
// they are not the ones kept already. The Secrets of certificates stay on the
// cluster only.
func (r *Reconciler) saveSnapshot(s *state) error {
	objects, err := s.rendered(s.plan.Objects())
	if err != nil {
		return fmt.Errorf("keeping the applied objects: %w", err)
	}
	data, err := json.Marshal(snapshot{Revision: s.revision(), Target: s.previous.Target, Objects: objects, Certificates: s.wanted, Hooks: s.hooks})
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
