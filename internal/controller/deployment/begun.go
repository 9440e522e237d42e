// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// begunObject is an object as it was planned to be written, and the hash by which the
// inventory knows that content.
type begunObject struct {
	Rendered string                     `json:"rendered"`
	Object   *unstructured.Unstructured `json:"object"`
}

// beginPlan notes, before the first write, what is about to be written: in the inventory
// by hashes, by which the same plan recognizes what a process wrote that died, and in the
// cache by content, by which a later revision knows which fields were this deployment's.
func (r *Reconciler) beginPlan(s *state) error {
	s.plan.Begin()
	if s.keeping {
		return nil
	}
	if err := r.keepBegun(s); err != nil {
		return fmt.Errorf("keeping the planned objects: %w", err)
	}
	return nil
}

// keptFile is a snapshot of which only what was begun is read.
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
	kept.Target = cmp.Or(kept.Target, s.previous.Target)
	all, changed := withBegun(kept.Begun, planned, s.previous)
	if !changed {
		return nil
	}
	kept.Begun = all
	if data, err = json.Marshal(kept); err != nil {
		return err
	}
	return r.Snapshots.Save(string(s.object.UID), data)
}

// begunObjects are the objects of the plan that are about to be written, but for the
// Secrets of certificates.
func (s *state) begunObjects() ([]begunObject, error) {
	hashes := map[inventory.ID]string{}
	planned := s.plan.Beginning()
	for _, object := range planned {
		hashes[object.ID] = object.Rendered.String()
	}
	objects, err := s.rendered(planned)
	if err != nil {
		return nil, err
	}
	begun := make([]begunObject, 0, len(objects))
	for _, object := range objects {
		begun = append(begun, begunObject{Rendered: hashes[inventory.IDOf(object)], Object: object})
	}
	return begun, nil
}

// withBegun adds what is planned to what was begun before: of that, what the inventory
// still refers to, and what the plan has nothing of.
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

// readBegun notes what was begun before this reconcile.
func (s *state) readBegun(begun []begunObject) {
	if s.begun != nil {
		return
	}
	s.begun = make(map[inventory.ID][]begunObject, len(begun))
	for _, object := range begun {
		id := inventory.IDOf(object.Object)
		s.begun[id] = append(s.begun[id], object)
	}
}

// earlier gives the contents of an object that may have been written before, of what is
// kept: of the last apply, and of the one that was begun since, if it is what the entry says.
func (s *state) earlier(snapshots *artifact.Snapshots, entry inventory.Entry) []*unstructured.Unstructured {
	var contents []*unstructured.Unstructured
	if last := s.lastFields(snapshots, entry.ID); last != nil {
		contents = append(contents, last)
	}
	for _, begun := range s.begun[entry.ID] {
		if begun.Rendered == entry.Rendered.String() {
			contents = append(contents, begun.Object)
		}
	}
	return contents
}
