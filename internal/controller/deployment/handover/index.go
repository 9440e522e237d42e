// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Cluster is where objects are: those of this cluster and those of one that a kubeconfig names are never the same ones, since the
// identity of the latter is what its API server says.
type Cluster struct {
	Target string
	Remote bool
}

// object is an object on a cluster, as it is wanted in a namespace.
type object struct {
	namespace string
	cluster   Cluster
	id        inventory.ID
}

// State is the spec and revision of a deployment with which it was reconciled.
type State struct {
	UID        types.UID
	Generation int64
	Revision   string // of the artifact; "" if there was none, or it could not be found out
}

// wait is since when deletions of a deployment wait, and for which other deployment of the namespace.
type wait struct {
	since time.Time
	other string
}

// Index remembers which objects deployments want and cannot have, because another deployment of their namespace has them, and with
// which state each was reconciled. It is lost with the process: then deletions wait until the others were reconciled, see Decide.
// The zero value is ready for use. It is safe for concurrent use.
type Index struct {
	mu     sync.Mutex
	wants  map[types.NamespacedName][]object
	wanted map[object][]types.NamespacedName // the first one gets it, the others are refused as before
	saw    map[types.NamespacedName]State
	waits  map[types.NamespacedName]wait // deployments with deletions that wait
}

// Want replaces the objects that a deployment wants and another one has. The caller has found out that its ServiceAccount may
// write them.
func (x *Index) Want(key types.NamespacedName, cluster Cluster, ids []inventory.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, was := range x.wants[key] {
		x.wanted[was] = slices.DeleteFunc(x.wanted[was], func(by types.NamespacedName) bool { return by == key })
		if len(x.wanted[was]) == 0 {
			delete(x.wanted, was)
		}
	}
	delete(x.wants, key)
	if len(ids) == 0 {
		return
	}
	if x.wants == nil {
		x.wants, x.wanted = map[types.NamespacedName][]object{}, map[object][]types.NamespacedName{}
	}
	for _, id := range ids {
		is := object{key.Namespace, cluster, id}
		x.wants[key] = append(x.wants[key], is)
		x.wanted[is] = append(x.wanted[is], key)
	}
}

// Wanted returns the other deployment of the same namespace that wants an object of a deployment.
func (x *Index) Wanted(of types.NamespacedName, cluster Cluster, id inventory.ID) (by types.NamespacedName, found bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, by := range x.wanted[object{of.Namespace, cluster, id}] {
		if by != of {
			return by, true
		}
	}
	return types.NamespacedName{}, false
}

// Saw notes that a deployment was reconciled, whatever came of it, and returns those with deletions that wait for it.
func (x *Index) Saw(key types.NamespacedName, state State) (waiting []types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.saw[key] == state {
		return nil
	}
	if x.saw == nil {
		x.saw = map[types.NamespacedName]State{}
	}
	x.saw[key] = state
	for waits, of := range x.waits {
		if waits.Namespace == key.Namespace && of.other == key.Name {
			waiting = append(waiting, waits)
		}
	}
	return waiting
}

// seen returns the state with which this process reconciled a deployment last.
func (x *Index) seen(key types.NamespacedName) State {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.saw[key]
}

// waited notes for which other deployment the deletions of one wait, "" for none, and returns for how long they have.
func (x *Index) waited(key types.NamespacedName, other string, now time.Time) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if other == "" {
		delete(x.waits, key)
		return 0
	}
	is, known := x.waits[key]
	if !known {
		is.since = now
	}
	if x.waits == nil {
		x.waits = map[types.NamespacedName]wait{}
	}
	is.other = other
	x.waits[key] = is
	return now.Sub(is.since)
}

// Forget drops what is remembered of a deployment.
func (x *Index) Forget(key types.NamespacedName) {
	x.Want(key, Cluster{}, nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.saw, key)
	delete(x.waits, key)
}
