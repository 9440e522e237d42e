// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// Keeps tells that a plan brings nothing new: all that it writes was applied before, with
// the same content. The objects are independent of one another then, and an
// object that cannot be written stops no other.
func (p *Plan) Keeps() bool {
	if p.Keeping || len(p.PruneFirst) > 0 {
		return p.Keeping
	}
	for a := range p.Actions() {
		if a.Writes() && a.Verb != Repair && a.Verb != Settle {
			return false
		}
	}
	return true
}

// notGivenAway leaves out of the objects of the applied revision those that the inventory does not list any more, and that exist: an
// attempt at a newer revision released them, to another deployment or for good.
func (in Input) notGivenAway(desired []Object) []Object {
	return slices.DeleteFunc(desired, func(object Object) bool {
		_, exists := in.Live[object.ID]
		return exists && !in.Previous.Has(object.ID)
	})
}

// leaveOut turns the violations of a plan that only keeps what is applied into LeftOut:
// each leaves out its object, and the rest is kept. It returns the remaining actions.
func (p *Plan) leaveOut(actions []Action) []Action {
	objects, namespaces := map[inventory.ID]bool{}, map[string]bool{}
	for _, v := range p.Violations {
		objects[v.Object] = true
		if v.Rule == violation.NamespaceMissing {
			namespaces[v.Object.Name] = true
		}
	}
	p.LeftOut, p.Violations = p.Violations, nil
	return slices.DeleteFunc(actions, func(a Action) bool {
		return a.Writes() && !ownership.IsNamespace(a.ID) && (objects[a.ID] || namespaces[a.Namespace])
	})
}

// LeaveOut removes objects from a plan that only keeps what is applied.
func (p *Plan) LeaveOut(out func(Object) bool) {
	for i := range p.Stages {
		p.Stages[i].Actions = slices.DeleteFunc(slices.Clone(p.Stages[i].Actions), func(a Action) bool { return out(a.Object) })
	}
}

// Trusted tells whether later stages rely on what this one writes: they must not trust
// certificates that could not be stored.
func (s Stage) Trusted() bool { return s.Name == stageCertificates }
