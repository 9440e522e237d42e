// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Begin records in the inventory of the plan what is about to be written: the content hashes of
// all objects with content that is not known to have been written. The inventory is
// stored before the first write, so that the next process recognizes the writes of one
// that died, and takes back fields that other managers changed in between.
func (p *Plan) Begin() {
	var entries []inventory.Entry
	for _, object := range p.Beginning() {
		entries = append(entries, inventory.Entry{ID: object.ID, Version: object.Resource.Version, Rendered: object.Rendered})
	}
	p.Inventory = p.Inventory.Begin(entries)
}

// Beginning are the objects with content that is not known to have been written.
func (p *Plan) Beginning() []Object {
	var objects []Object
	for action := range p.Actions() {
		if !action.Untracked && (action.Verb == Create || action.Alters()) {
			objects = append(objects, action.Object)
		}
	}
	return objects
}
