// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/plural"
)

// State is the state of an object that is not healthy.
type State string

const (
	// Failed: it will not become healthy without a change.
	Failed State = "Failed"
	// Missing: it does not exist any more.
	Missing State = "Missing"
	// Terminating: it is being deleted.
	Terminating State = "Terminating"
	// Unknown: the ServiceAccount may not read it, or its status cannot be read.
	Unknown State = "Unknown"
	// InProgress: it is not healthy yet.
	InProgress State = "InProgress"
)

// severity sorts the states that an administrator should see first to the front.
var severity = map[State]int{Failed: 0, Missing: 1, Terminating: 2, Unknown: 3, InProgress: 4}

// Object is an unhealthy object, and why.
type Object struct {
	inventory.ID
	State   State
	Message string
}

// Report is the health of a set of objects.
type Report struct {
	Total     int
	Unhealthy []Object // the worst first, then by identity
	// Seen describes the objects that were read.
	Seen map[inventory.ID]Sight
}

// Sight describes an object when it was read; zero where it did not exist.
type Sight struct {
	UID        types.UID
	Version    string // resource version
	Generation int64
	Healthy    bool
	Completed  bool // it is a Job that ran to its end
}

// Healthy tells that every object is healthy.
func (r Report) Healthy() bool { return len(r.Unhealthy) == 0 }

// Failed tells that some object will not become healthy by waiting.
func (r Report) Failed() bool {
	return len(r.Unhealthy) > 0 && r.Unhealthy[0].State == Failed
}

// Message says what is wrong, with the first cause. It is stable while the objects do not
// change.
func (r Report) Message() string {
	if r.Healthy() {
		return plural.Are(r.Total, "object") + " healthy"
	}
	first := r.Unhealthy[0]
	return fmt.Sprintf("%d of %s not healthy: %s: %s", len(r.Unhealthy), plural.Are(r.Total, "object"), first.ID, first.Message)
}

func (r *Report) sort() {
	slices.SortFunc(r.Unhealthy, func(a, b Object) int {
		return cmp.Or(cmp.Compare(severity[a.State], severity[b.State]), a.Compare(b.ID))
	})
}
