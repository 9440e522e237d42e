// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
)

// begunObject is an object as it was planned, and the hash of its content in the
// inventory.
type begunObject struct {
	Rendered string                     `json:"rendered"`
	Object   *unstructured.Unstructured `json:"object"`
}

// beginPlan records the planned writes before the first one: in the inventory by hashes,
// so that the same plan recognizes writes of a process that died, and in the cache by
// content, so that a later revision knows which fields this deployment owned.
func (r *Reconciler) beginPlan(s *state) error {
	s.decided.plan.Begin()
	if s.keeping {
		return nil
	}
	if err := r.keepBegun(s); err != nil {
		return fmt.Errorf("keeping the planned objects: %w", err)
	}
	return nil
}

// keptFile is a snapshot with only the begun objects decoded.
type keptFile struct {
	Revision     string          `json:"revision"`
	Target       string          `json:"target"`
	Objects      json.RawMessage `json:"objects"`
	Certificates json.RawMessage `json:"certificates,omitempty"`
	Hooks        json.RawMessage `json:"hooks,omitempty"`
	Begun        []begunObject   `json:"begun,omitempty"`
}

func (r *Reconciler) keepBegun(s *state) error {
	planned, err := s.begunObjects()
	if err != nil || len(planned) == 0 {
		return err
	}
	data, found, err := r.Snapshots.Load(string(s.object.UID))
	kept := keptFile{Objects: json.RawMessage("[]")}
	if err == nil && found {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil { // what is damaged is replaced
		kept = keptFile{Objects: json.RawMessage("[]")}
	}
	s.readBegun(kept.Begun)
	kept.Target = cmp.Or(kept.Target, s.listed.inventory.Target)
	all, changed := withBegun(kept.Begun, planned, s.listed.inventory)
	if !changed {
		return nil
	}
	kept.Begun = all
	if data, err = json.Marshal(kept); err != nil {
		return err
	}
	return r.Snapshots.Save(string(s.object.UID), data)
}

// begunObjects are the objects that the plan is about to write, without the Secrets of
// certificates.
func (s *state) begunObjects() ([]begunObject, error) {
	hashes := map[inventory.ID]string{}
	planned := s.decided.plan.Beginning()
	for _, object := range planned {
		hashes[object.ID] = object.Rendered.String()
	}
	objects, err := s.bare(planned)
	if err != nil {
		return nil, err
	}
	begun := make([]begunObject, 0, len(objects))
	for _, object := range objects {
		begun = append(begun, begunObject{Rendered: hashes[inventory.IDOf(object)], Object: object})
	}
	return begun, nil
}

// withBegun adds the planned objects to those begun before. Of the latter it keeps
// those that the inventory still refers to and those that are not in the plan.
func withBegun(before, planned []begunObject, listed inventory.Inventory) (all []begunObject, changed bool) {
	renewed := make(map[inventory.ID]string, len(planned))
	for _, object := range planned {
		renewed[inventory.IDOf(object.Object)] = object.Rendered
	}
	same := 0
	for _, was := range before {
		id := inventory.IDOf(was.Object)
		rendered, again := renewed[id]
		entry, _ := listed.Get(id)
		switch {
		case again && rendered == was.Rendered:
			same++
		case !again, entry.Rendered.String() == was.Rendered:
			all = append(all, was)
		}
	}
	return append(all, planned...), same < len(planned)
}

// readBegun indexes the objects that were begun before this reconcile.
func (s *state) readBegun(begun []begunObject) {
	if s.snapshot.begun != nil {
		return
	}
	s.snapshot.begun = make(map[inventory.ID][]begunObject, len(begun))
	for _, object := range begun {
		id := inventory.IDOf(object.Object)
		s.snapshot.begun[id] = append(s.snapshot.begun[id], object)
	}
}

// earlier returns the kept contents that may have been written to an object: those of the
// last apply, and those begun since with the hash of the inventory entry.
func (s *state) earlier(snapshots *lastapplied.Snapshots, entry inventory.Entry) []*unstructured.Unstructured {
	var contents []*unstructured.Unstructured
	if last := s.lastFields(snapshots, entry.ID); last != nil {
		contents = append(contents, last)
	}
	for _, begun := range s.snapshot.begun[entry.ID] {
		if begun.Rendered == entry.Rendered.String() {
			contents = append(contents, begun.Object)
		}
	}
	return contents
}
