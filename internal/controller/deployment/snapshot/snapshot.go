// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
)

// Snapshot is what a deployment applied last. It serves to correct drift of the running
// revision while a newer one cannot be fetched, converted or planned, and tells an
// upgrade which fields the deployment owned.
type Snapshot struct {
	// Revision of the artifact.
	Revision string `json:"revision"`
	// Target is the cluster that holds the objects.
	Target string `json:"target"`
	// Objects as they were applied, without what certify adds.
	Objects []*unstructured.Unstructured `json:"objects"`
	// Certificates that the objects mount and trust.
	Certificates []convert.Certificate `json:"certificates,omitempty"`
	// Hooks of the revision.
	Hooks []plan.Hook `json:"hooks,omitempty"`
	// Files say where the objects came from.
	Files Files `json:"files"`
	// Begun are objects of newer plans, some of which may have been written. They are stored beside the other fields: see KeepBegun.
	Begun []Begun `json:"-"`
}

// Files are the files of a revision: see package leftout.
type Files struct {
	// Origins are those that the objects came from, one each.
	Origins []string `json:"origins,omitempty"`
	// LeftOut are the links that its artifact lacks, and Held what they keep.
	LeftOut []string `json:"leftOut,omitempty"`
	Held    []Held   `json:"held,omitempty"`
}

// Held are objects that the same links keep, by their places in LeftOut.
type Held struct {
	Links   []int          `json:"links"`
	Objects []inventory.ID `json:"objects"`
}

// Hold notes what the links of LeftOut keep.
func (f *Files) Hold(groups []pruning.LeftOut) {
	places := make(map[string]int, len(f.LeftOut))
	for place, name := range f.LeftOut {
		places[name] = place
	}
	for _, group := range groups {
		held := Held{Objects: group.Objects}
		for _, name := range group.Files {
			if place, known := places[name]; known {
				held.Links = append(held.Links, place)
			}
		}
		f.Held = append(f.Held, held)
	}
}

// held are the names of the links that keep objects: one slice for all those of a group.
func (f *Files) held() map[inventory.ID][]string {
	names := map[inventory.ID][]string{}
	for _, held := range f.Held {
		group := make([]string, 0, len(held.Links))
		for _, place := range held.Links {
			if place >= 0 && place < len(f.LeftOut) {
				group = append(group, f.LeftOut[place])
			}
		}
		for _, id := range held.Objects {
			names[id] = group
		}
	}
	return names
}

// Begun is an object as it was planned, and the hash of its content in the
// inventory.
type Begun struct {
	Rendered string                     `json:"rendered"`
	Object   *unstructured.Unstructured `json:"object"`
	// Recorded: the inventory referred to this content until another one was begun, or the applied one written again.
	Recorded bool `json:"recorded,omitempty"`
}

// Read reads the snapshot of a deployment; applied tells that a revision was
// applied completely.
func Read(snapshots *lastapplied.Snapshots, uid string) (last Snapshot, applied bool, err error) {
	data, found, err := snapshots.Load(uid)
	if err != nil || !found {
		return Snapshot{}, false, err
	}
	begun, err := readKept(snapshots, uid)
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &last)
	}
	if err != nil {
		return Snapshot{}, false, fmt.Errorf("reading the objects that were applied last: %w", err)
	}
	last.Target, last.Begun = cmp.Or(last.Target, begun.Target), begun.Begun
	return last, last.Revision != "", nil
}

// Unusable tells whether an error of Read means that what is stored was written by another version of Satchel, or is damaged: it is as
// if nothing was stored.
func Unusable(err error) bool {
	reason := fetch.ReasonOf(err)
	return reason == fetch.WrittenByAnotherVersion || reason == fetch.InvalidContent
}

// Inventory lists the objects, and the Secrets of their certificates, as planned: the next
// comparison with the cluster finds out whether they still exist and belong to the deployment.
func (s Snapshot) Inventory(authority inventory.ID) inventory.Inventory {
	entries := make([]inventory.Entry, 0, len(s.Objects))
	for _, id := range certificates.IDs(authority, s.Certificates) {
		entries = append(entries, inventory.Entry{ID: id, Version: certificates.Secrets.Version})
	}
	for _, object := range s.Objects {
		entries = append(entries, inventory.Entry{ID: inventory.IDOf(object), Version: object.GroupVersionKind().Version})
	}
	for _, begun := range s.Begun {
		entries = append(entries, inventory.Entry{ID: inventory.IDOf(begun.Object), Version: begun.Object.GroupVersionKind().Version})
	}
	return inventory.New(s.Target, entries...)
}

// encode is json.Marshal without Begun, which would scan each object once more, as an Unstructured encodes itself.
func (s Snapshot) encode() ([]byte, error) {
	objects := make([]map[string]any, 0, len(s.Objects))
	for _, object := range s.Objects {
		objects = append(objects, object.Object)
	}
	return json.Marshal(struct {
		Revision     string                `json:"revision"`
		Target       string                `json:"target"`
		Objects      []map[string]any      `json:"objects"`
		Certificates []convert.Certificate `json:"certificates,omitempty"`
		Hooks        []plan.Hook           `json:"hooks,omitempty"`
		Files        Files                 `json:"files"`
	}{s.Revision, s.Target, objects, s.Certificates, s.Hooks, s.Files})
}

// Replace replaces the objects by the same ones as they are applied.
func (s *Snapshot) Replace(objects []*unstructured.Unstructured) {
	s.Files.Origins = leftout.OriginsOf(objects, s.origins())
	s.Objects = objects
}

// origins are the files of the objects.
func (s *Snapshot) origins() map[inventory.ID]string {
	byID := make(map[inventory.ID]string, len(s.Objects))
	for i, file := range s.Files.Origins[:min(len(s.Files.Origins), len(s.Objects))] {
		byID[inventory.IDOf(s.Objects[i])] = file
	}
	return byID
}

// Save stores the snapshot of a deployment, if it is not stored already. Nothing counts as begun afterwards.
func Save(snapshots *lastapplied.Snapshots, uid string, last Snapshot) error {
	data, err := last.encode()
	if err != nil {
		return err
	}
	return snapshots.Save(uid, data)
}
