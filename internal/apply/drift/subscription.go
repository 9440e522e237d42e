// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Key names a deployment.
type Key = types.NamespacedName

// Subscription is what a deployment is woken for.
type Subscription struct {
	Client *tenant.Client
	Owner  inventory.Owner
	// Target is the cluster that the objects are in.
	Target string
	// Drift: wake it for drift, and not for health only.
	Drift bool
	// DriftResolved: wake it also when drift has disappeared without a write of ours.
	DriftResolved bool
	Objects       []Object
}

// Object is a subscribed object.
type Object struct {
	inventory.Entry
	Resource schema.GroupVersionResource
	// Version is the resource version that the entry is of; empty when not known.
	Version string
	// Health: wake the deployment when its status may differ from that at Looked.
	Health bool
	Looked string
}

// Findings are the objects that a deployment should read.
type Findings struct {
	// Drifted objects differ from what was applied.
	Drifted []inventory.ID
	// Changed objects may have another health.
	Changed []inventory.ID
	// Gaps are the unwatched collections and objects, with reasons, sorted.
	Gaps []Gap
	// Watched tells that all objects are watched at this moment.
	Watched bool
}

// Gap is a collection that cannot be watched, or one object.
type Gap struct {
	Resource  schema.GroupResource
	Namespace string
	Name      string // of the object; empty for a collection
	Why       string
}

// String describes the gap: "secrets in shop: the ServiceAccount may not watch them", "secrets db in shop: the ServiceAccount may not
// watch it".
func (g Gap) String() string {
	where := g.Resource.String()
	if g.Name != "" {
		where += " " + g.Name
	}
	if g.Namespace != "" {
		where += " in " + g.Namespace
	}
	return where + ": " + g.Why
}

// subscriber is a deployment that has subscribed.
type subscriber struct {
	key           Key
	manager       string // never changes: it is read without the lock
	drift         bool
	driftResolved bool
	streams       map[*stream]int // with the number of objects
	items         []*item
	// drifted and changed hold the findings.
	drifted, changed map[*item]struct{}
	// busy: the deployment is being reconciled. It is woken afterwards for the remaining
	// findings, and if after says so.
	busy, after bool
	// expects: some items are expected. tentative: all of them are.
	expects, tentative bool
	// conflictUntil is, for objects with a conflicting field manager, until when their drift is ignored.
	conflictUntil map[inventory.ID]time.Time
	// settleUntil is, for objects that were written without a visible change to our fields (moved), until when that is ignored: by then
	// the watch mostly shows that only the status changed.
	settleUntil map[inventory.ID]time.Time
}

// item is an object that a deployment subscribes to. There is one for each
// object of each deployment: it is kept small.
type item struct {
	sub    *subscriber
	stream *stream
	name   string
	want   want
	got    sight
	good   writers // when it was last seen as it is wanted
	looked uint64  // version at which the health was checked
	// reported is the state that was last reported as drift, and shown the last version that was reported because of health.
	reported state
	shown    uint64
	health   bool
	// adopted: another client wrote a subresource, and seen was updated.
	adopted bool
	stale   bool // not of the latest subscription
	// expected: it is about to be created, and its state is not known yet.
	expected bool
	next     *item // of the same object, for another deployment
}

func (i *item) id() inventory.ID {
	return inventory.ID{Group: i.stream.key.kind.Group, Kind: i.stream.key.kind.Kind, Namespace: i.stream.key.namespace, Name: i.name}
}
