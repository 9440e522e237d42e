// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Key names a deployment.
type Key = types.NamespacedName

// Subscription is what a deployment wants to be told about.
type Subscription struct {
	Client *tenant.Client
	Owner  inventory.Owner
	// Target is the cluster that the objects are in.
	Target string
	// Drift: to be told of drift, and not of health only.
	Drift bool
	// Mended: to be told also when drift has gone by itself.
	Mended  bool
	Objects []Object
}

// Object is one to be told about.
type Object struct {
	inventory.Entry
	Resource schema.GroupVersionResource
	// Version is the resource version that the entry is of; empty when not known.
	Version string
	// Health: to be told when its status may be another one than at Looked.
	Health bool
	Looked string
}

// Findings are what a deployment should look at.
type Findings struct {
	// Drifted objects differ from what was applied.
	Drifted []inventory.ID
	// Changed objects may have another health.
	Changed []inventory.ID
	// Gaps are what is not watched, and why, sorted.
	Gaps []Gap
	// Watched tells that all of it is watched at this moment.
	Watched bool
}

// Gap is a collection that cannot be watched, or one object.
type Gap struct {
	Resource  schema.GroupResource
	Namespace string
	Name      string // of the object; empty for a collection
	Why       string
}

// String is the gap for people: "secrets in shop: the account may not watch them", "secrets db in shop: the account may not
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
	key     Key
	manager string
	drift   bool
	mended  bool
	streams map[*stream]int // with the number of objects
	items   int
	// drifted and changed hold what there is to tell.
	drifted, changed map[*item]struct{}
	// busy: the deployment is being reconciled. It is woken afterwards for what is left
	// to be told, and if after says so.
	busy, after bool
	// expects: there are items that are expected. tentative: there is nothing else.
	expects, tentative bool
	// calm holds until when an object is left alone although it drifts, because
	// somebody fights for it, and settle until when one that was only written is, to
	// see whether it was its status.
	calm, settle map[inventory.ID]time.Time
}

// item is an object that somebody wants to be told about. There is one for each
// object of each deployment: it is kept small.
type item struct {
	sub    *subscriber
	stream *stream
	name   string
	want   want
	got    sight
	good   writers // when it was last seen as it is wanted
	looked uint64  // version at which the health was looked at
	told   state   // whose drift was told
	shown  uint64  // version whose change was told
	health bool
	// adopted: somebody wrote a subresource, and seen was brought up to date.
	adopted bool
	stale   bool // not of the latest subscription
	// expected: it is about to be created, and nobody knows yet how it is left.
	expected bool
	next     *item // of the same object, for another deployment
}

func (i *item) id() inventory.ID {
	return inventory.ID{Group: i.stream.key.kind.Group, Kind: i.stream.key.kind.Kind, Namespace: i.stream.key.namespace, Name: i.name}
}
