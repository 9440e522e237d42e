// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
)

// kept is the addition to a snapshot: what was begun since it was saved.
type kept struct {
	// Target is the cluster that holds the objects.
	Target string  `json:"target"`
	Begun  []Begun `json:"begun,omitempty"`
}

// mostBegun is how many contents are kept of one object; the oldest ones are dropped.
const mostBegun = 4

// KeepBegun adds objects that are about to be written to the snapshot of a deployment. listed is its inventory. The reader
// learns what was begun before.
func KeepBegun(snapshots *lastapplied.Snapshots, uid string, planned []Begun, listed inventory.Inventory, reader *Reader) error {
	return updateBegun(snapshots, uid, reader, func(k *kept) (changed bool) {
		k.Target = cmp.Or(k.Target, listed.Target)
		k.Begun, changed = withBegun(k.Begun, planned, listed)
		return changed
	})
}

// RecordBegun keeps what was begun while the applied contents of objects are about to be written again, and their hashes
// replace those in the inventory. Otherwise nothing would tell that fields of the begun contents may be the deployment's.
func RecordBegun(snapshots *lastapplied.Snapshots, uid string, applied map[inventory.ID]string, listed inventory.Inventory, reader *Reader) error {
	return updateBegun(snapshots, uid, reader, func(k *kept) bool { return recordReplaced(k.Begun, applied, listed) })
}

// updateBegun changes the begun objects of a snapshot. A damaged snapshot is replaced.
func updateBegun(snapshots *lastapplied.Snapshots, uid string, reader *Reader, update func(*kept) (changed bool)) error {
	begun, err := readKept(snapshots, uid)
	if err != nil {
		begun = kept{}
	}
	reader.readBegun(begun.Begun)
	if !update(&begun) {
		return nil
	}
	data, err := json.Marshal(begun)
	if err != nil {
		return err
	}
	return snapshots.SaveAddition(uid, data)
}

// readKept reads what was begun.
func readKept(snapshots *lastapplied.Snapshots, uid string) (begun kept, err error) {
	data, _, err := snapshots.LoadAddition(uid)
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &begun)
	}
	return begun, err
}

// withBegun adds the planned objects to those begun before. Of the latter it keeps
// those that the inventory refers or referred to, and those that are not in the plan.
func withBegun(before, planned []Begun, listed inventory.Inventory) (all []Begun, changed bool) {
	renewed := make(map[inventory.ID]string, len(planned))
	for _, object := range planned {
		renewed[inventory.IDOf(object.Object)] = object.Rendered
	}
	before = slices.Clone(before)
	recordReplaced(before, renewed, listed)
	recorded := map[inventory.ID]bool{}
	same := 0
	for _, was := range before {
		id := inventory.IDOf(was.Object)
		rendered, again := renewed[id]
		switch {
		case again && rendered == was.Rendered:
			recorded[id] = was.Recorded
			same++
		case !again, was.Recorded:
			all = append(all, was)
		}
	}
	for _, object := range planned {
		object.Recorded = recorded[inventory.IDOf(object.Object)]
		all = append(all, object)
	}
	return newest(all), same < len(planned)
}

// recordReplaced marks the begun contents with hashes that are in the inventory, and are about to be replaced there by others. It
// tells whether that changes any.
func recordReplaced(begun []Begun, next map[inventory.ID]string, listed inventory.Inventory) (changed bool) {
	for at := range begun {
		was := &begun[at]
		id := inventory.IDOf(was.Object)
		entry, _ := listed.Get(id)
		if rendered, replaced := next[id]; replaced && rendered != was.Rendered && was.isOf(entry) && !was.Recorded {
			was.Recorded, changed = true, true
		}
	}
	return changed
}

// isOf tells whether an inventory entry refers to the content, or may refer to it: the hash is not recorded of all objects that
// wait for their removal.
func (b *Begun) isOf(entry inventory.Entry) bool {
	return entry.Rendered.String() == b.Rendered || entry.Rendered.IsZero() && (entry.Confirmed() || entry.Begun)
}

// newest keeps the last contents of each object.
func newest(all []Begun) []Begun {
	count := make(map[inventory.ID]int, len(all))
	for _, object := range all {
		count[inventory.IDOf(object.Object)]++
	}
	return slices.DeleteFunc(all, func(object Begun) bool {
		id := inventory.IDOf(object.Object)
		count[id]--
		return count[id] >= mostBegun
	})
}
