// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Leaving is a field that only the deployment owns and that its bundle does not set any more, so that an apply would remove it
// or reset it to its default.
type Leaving struct {
	Path   fieldpath.Path
	Value  any    // on the cluster
	Unread string // why autoscalers that the bundle does not contain are not known
	// Ignored: spec.drift.ignore leaves it to others.
	Ignored bool
}

// String is the field with its value: ".spec.replicas (3)".
func (l Leaving) String() string {
	encoded, err := json.Marshal(l.Value)
	if err != nil {
		return l.Path.String()
	}
	return fmt.Sprintf("%s (%s)", l.Path, encoded)
}

// Sight is what was seen of an object that autoscalers may scale.
type Sight struct {
	Replicas fieldpath.Path // that of its kind
	Leaving  []Leaving
	// Scaled: a controller of autoscalers has set the replicas, which the bundle sets as well.
	Scaled   bool
	Regained []fieldpath.Path // that were handed over, and that the bundle sets again
	Unread   Unread
}

// Unread says why the autoscalers of a namespace are not known; nothing where they are.
type Unread struct {
	Horizontal, Vertical string
}

// Kept is a field that leaves the bundle and keeps its value, because an autoscaler sets it from now on, or because it is ignored.
type Kept struct {
	Leaving
	By inventory.ID
}

// String is the field with its value, and the autoscaler; an ignored field is of any object, and has no value here.
func (k Kept) String() string {
	if k.Ignored {
		return k.Path.String() + ", which spec.drift.ignore leaves to others"
	}
	return fmt.Sprintf("%s for %s", k.Leaving, k.By)
}

// Handover is what becomes of fields that autoscalers set.
type Handover struct {
	Kept  []Kept
	Reset []Leaving // no autoscaler sets them: they are removed, or get their default
	// Ended: the autoscaler that has set the replicas is gone, so that the bundle sets them again.
	Ended    bool
	Regained []fieldpath.Path // that were handed over before: the bundle sets them again
}

// Decide decides about an object. The scalers are those that are there after the apply. Replicas are not kept at 0 for an autoscaler that does
// nothing as long as there are none.
func (s Sight) Decide(id inventory.ID, scalers []Autoscaler) Handover {
	h := Handover{Regained: s.Regained, Ended: s.Scaled && s.Unread.Horizontal == ""}
	for _, scaler := range scalers {
		if scaler.Target == id && !scaler.IsVertical() {
			h.Ended = false
		}
	}
	for _, field := range s.Leaving {
		if by, found := s.taker(id, field, scalers); found || field.Ignored {
			h.Kept = append(h.Kept, Kept{field, by})
		} else {
			field.Unread = s.Unread.Horizontal
			if !field.Path.Equals(s.Replicas) {
				field.Unread = s.Unread.Vertical
			}
			h.Reset = append(h.Reset, field)
		}
	}
	return h
}

func (s Sight) taker(id inventory.ID, field Leaving, scalers []Autoscaler) (inventory.ID, bool) {
	for _, scaler := range scalers {
		starts := field.Value != int64(0) || scaler.fromZero
		if scaler.Target == id && starts && scaler.Sets(field.Path, s.Replicas) {
			return scaler.ID, true
		}
	}
	return inventory.ID{}, false
}

// Leaves tells whether fields leave the bundle.
func (h Handover) Leaves() bool { return len(h.Kept)+len(h.Reset) > 0 }

// Paths are the fields that are kept.
func (h Handover) Paths() *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, kept := range h.Kept {
		set.Insert(kept.Path)
	}
	return set
}
