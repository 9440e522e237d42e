// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// State of an object that is not healthy.
type State string

const (
	// Failed: it will not become healthy by itself.
	Failed State = "Failed"
	// Missing: it does not exist any more.
	Missing State = "Missing"
	// Terminating: it is being deleted.
	Terminating State = "Terminating"
	// Unknown: the account may not look, or its status cannot be read.
	Unknown State = "Unknown"
	// InProgress: it is on its way.
	InProgress State = "InProgress"
)

// severity sorts what an admin should read first to the front.
var severity = map[State]int{Failed: 0, Missing: 1, Terminating: 2, Unknown: 3, InProgress: 4}

// Object is one that is not healthy, and why.
type Object struct {
	inventory.ID
	State   State
	Message string
}

// Report is the health of a set of objects.
type Report struct {
	Total     int
	Unhealthy []Object // the worst first, then by identity
	// Seen says how the objects were that were looked at.
	Seen map[inventory.ID]Sight
}

// Sight is how an object was when it was looked at; zero where it did not exist.
type Sight struct {
	Version    string // resource version
	Generation int64
	Healthy    bool
	Completed  bool // it is a Job that ran to its end
}

// Healthy tells that nothing is wrong or on its way.
func (r Report) Healthy() bool { return len(r.Unhealthy) == 0 }

// Failed tells that waiting does not help for some object.
func (r Report) Failed() bool {
	return len(r.Unhealthy) > 0 && r.Unhealthy[0].State == Failed
}

// Message says in words what is wrong, with the first cause. It does not change
// while nothing changes.
func (r Report) Message() string {
	if r.Healthy() {
		return fmt.Sprintf("%d objects are healthy", r.Total)
	}
	first := r.Unhealthy[0]
	return fmt.Sprintf("%d of %d objects are not healthy: %s: %s", len(r.Unhealthy), r.Total, first.ID, first.Message)
}

func (r *Report) sort() {
	slices.SortFunc(r.Unhealthy, func(a, b Object) int {
		return cmp.Or(cmp.Compare(severity[a.State], severity[b.State]), a.Compare(b.ID))
	})
}
