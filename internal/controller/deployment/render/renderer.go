// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// How many values (fields, list items, scalars) of objects are held at once. One bundle may have a million by default; a
// value takes some 200 bytes, and twice that while a plan holds the objects rendered and completed. Objects for other
// clusters have a limit of their own, since those servers decide how long they are held. All small bundles for other
// clusters, which need no room, have smallRemoteValues at most, however many of them are reconciled at once.
const (
	mostValues        = 1_000_000
	mostRemoteValues  = 500_000
	freeValues        = 20_000
	smallRemoteValues = 160_000
)

// Renderer converts bundles in worker processes, and shares the memory for their objects. What it remembers of deployments
// are their conversions, the limits that these exceeded, and the memory that they hold or wait for.
type Renderer struct {
	Workers   jobs.Runner
	Manifests convert.Limits

	Conversions *Queue
	excesses    Excesses
	room        *Room // of decoded objects
	remoteRoom  *Room // of those for other clusters
}

// New returns a renderer that wakes a deployment when its conversion has ended, or when there is memory for it. So many
// deployments to other clusters are reconciled at once; 0 if that is not known.
func New(workers jobs.Runner, manifests convert.Limits, remotely int, wake func(types.NamespacedName)) *Renderer {
	return &Renderer{
		Workers: workers, Manifests: manifests, Conversions: NewQueue(wake),
		room: NewRoom(mostValues, freeValues, wake), remoteRoom: NewRoom(mostRemoteValues, freeRemoteValues(remotely), wake),
	}
}

// freeRemoteValues is the size up to which a bundle for another cluster needs no room.
func freeRemoteValues(remotely int) int64 {
	return min(freeValues, smallRemoteValues/int64(max(remotely, 1)))
}

// Source queues deployments that wait for a turn to convert.
func (r *Renderer) Source() source.Source { return r.Conversions.Turns.Source() }

// roomOf is the memory limit that the objects of a deployment count against.
func (r *Renderer) roomOf(d *v1alpha1.BundleDeployment) *Room {
	if effective.IsRemote(d.Spec.Target.ClusterReference) {
		return r.remoteRoom
	}
	return r.room
}

// Hold reserves room for objects of a deployment. If there is none, the deployment is woken when there is.
func (r *Renderer) Hold(d *v1alpha1.BundleDeployment, values int64) (release func(), err error) {
	key, room := client.ObjectKeyFromObject(d), r.roomOf(d)
	if !room.Take(key, values) {
		return nil, failure.Error{Reason: v1alpha1.ReasonWaitingForMemory, Waiting: true, Woken: true, Err: errors.New(
			"waiting until other large bundles are applied: their objects use all the memory for decoded objects")}
	}
	return func() { room.Leave(key) }, nil
}

// ValuesOf counts the values of objects.
func ValuesOf(objects []*unstructured.Unstructured) int64 {
	count := int64(0)
	for _, object := range objects {
		count += jobs.Values(object.Object)
	}
	return count
}

// End releases the places in queues that were kept for a deployment if its reconcile, or the drift correction of the applied
// revision, ended without asking for them.
func (r *Renderer) End(key types.NamespacedName, err, keepErr error) {
	if failure.Of(err).Reason != v1alpha1.ReasonWaitingForMemory && failure.Of(keepErr).Reason != v1alpha1.ReasonWaitingForMemory {
		r.room.Forget(key)
		r.remoteRoom.Forget(key)
	}
	if !errors.Is(err, ErrPending) {
		r.Conversions.Leave(key)
	}
}

// Abandon ends the conversion of a deployment, and its wait for one.
func (r *Renderer) Abandon(key types.NamespacedName) {
	r.Conversions.End(key)
	r.Conversions.Leave(key)
}

// Forget drops everything about a deployment that is gone.
func (r *Renderer) Forget(key types.NamespacedName) {
	r.Abandon(key)
	r.excesses.Forget(key)
	r.room.Forget(key)
	r.remoteRoom.Forget(key)
}

// Unwanted ends the conversion of a deployment as soon as it is deleted or suspended. It lets every event through.
func (r *Renderer) Unwanted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		d, ok := e.ObjectNew.(*v1alpha1.BundleDeployment)
		if ok && (!d.DeletionTimestamp.IsZero() || d.Spec.Suspend) {
			r.Conversions.End(client.ObjectKeyFromObject(d))
		}
		return true
	}}
}
