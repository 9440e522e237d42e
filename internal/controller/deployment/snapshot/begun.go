// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"encoding/json"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
)

// keptFile is a snapshot with only the begun objects decoded.
type keptFile struct {
	Revision     string          `json:"revision"`
	Target       string          `json:"target"`
	Objects      json.RawMessage `json:"objects"`
	Certificates json.RawMessage `json:"certificates,omitempty"`
	Hooks        json.RawMessage `json:"hooks,omitempty"`
	Begun        []Begun         `json:"begun,omitempty"`
}

// KeepBegun adds objects that are about to be written to the snapshot of a deployment. listed is its inventory. The reader
// learns what was begun before.
func KeepBegun(snapshots *lastapplied.Snapshots, uid string, planned []Begun, listed inventory.Inventory, reader *Reader) error {
	data, found, err := snapshots.Load(uid)
	kept := keptFile{Objects: json.RawMessage("[]")}
	if err == nil && found {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil { // what is damaged is replaced
		kept = keptFile{Objects: json.RawMessage("[]")}
	}
	reader.readBegun(kept.Begun)
	kept.Target = cmp.Or(kept.Target, listed.Target)
	all, changed := withBegun(kept.Begun, planned, listed)
	if !changed {
		return nil
	}
	kept.Begun = all
	if data, err = json.Marshal(kept); err != nil {
		return err
	}
	return snapshots.Save(uid, data)
}

// withBegun adds the planned objects to those begun before. Of the latter it keeps
// those that the inventory still refers to and those that are not in the plan.
func withBegun(before, planned []Begun, listed inventory.Inventory) (all []Begun, changed bool) {
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
