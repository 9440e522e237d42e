// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/watch"
)

// waker puts deployments into the queue of the controller, once that runs.
type waker struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
}

// source gives the waker the queue.
func (w *waker) source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.queue.Store(&queue)
		return nil
	})
}

// wake has a deployment reconciled after a pause.
func (w *waker) wake(key watch.Key, pause time.Duration) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: key}, pause)
	}
}

// accountExists tells whether somebody may be watched for: of an account on another
// cluster, that cluster tells.
func (r *Reconciler) accountExists(ctx context.Context, id tenant.Identity) (bool, error) {
	if id.Remote() {
		return true, nil
	}
	return r.Tenants.AccountExisted(ctx, id)
}

// subscribe tells the watches how the objects were left, so that they can tell what
// becomes of them.
func (r *Reconciler) subscribe(s *state, err error) {
	key, of := client.ObjectKeyFromObject(s.object), s
	if s.kept != nil {
		of = s.kept
	}
	switch {
	case s.client == nil && judge(err).reason == v1alpha1.ReasonAccountNotFound:
		r.watches.Drop(key)
	case of.due && of.plan != nil && of.applied != nil:
		r.watches.Set(key, of.subscription())
	case s.mended != nil:
		r.watches.Update(key, s.mended.left)
	}
	s.gaps = r.watches.Gaps(key)
	r.follow(s, err)
	if of.health != nil {
		r.watches.Looked(key, of.health.Seen)
	}
}

// unwatch ends everything that is watched for a deployment.
func (r *Reconciler) unwatch(key watch.Key) {
	r.watches.Drop(key)
	r.names.Drop(key)
}

// expectation is what is about to be created.
func (s *state) expectation() watch.Subscription {
	subscription := s.ownSubscription()
	for _, action := range s.plan.Actions() {
		if action.Verb == plan.Create && !action.Untracked {
			subscription.Objects = append(subscription.Objects, watch.Object{Entry: inventory.Entry{ID: action.ID}, Resource: action.Resource})
		}
	}
	return subscription
}

// ownSubscription has no objects yet.
func (s *state) ownSubscription() watch.Subscription {
	return watch.Subscription{
		Client: s.client, Owner: s.owner, Target: s.previous.Target,
		Drift: s.object.Spec.DriftModeOrDefault() != v1alpha1.DriftDisabled, DriftResolved: s.warns(),
	}
}

// subscription is what there is to be told of the objects of the plan.
func (s *state) subscription() watch.Subscription {
	subscription := s.ownSubscription()
	healthy := map[inventory.ID]bool{}
	for _, object := range s.note.objects {
		healthy[object.ID] = true
	}
	for _, action := range s.plan.Actions() {
		entry, listed := s.previous.Get(action.ID)
		if action.Untracked || !listed || !entry.Confirmed() {
			continue
		}
		subscription.Objects = append(subscription.Objects, watch.Object{
			Entry: entry, Resource: action.Resource, Version: s.version(action.ID),
			Health: healthy[action.ID], Looked: s.note.looked[action.ID].Version,
		})
	}
	return subscription
}

// version is the resource version at which an object was written or compared.
func (s *state) version(id inventory.ID) string {
	if version := s.applied.Versions[id]; version != "" {
		return version
	}
	return s.observed[id].ResourceVersion
}

// news are the objects whose health has to be looked at after all were compared:
// those that were written, and those that are not as they were when last seen healthy.
func (s *state) news() []plan.Object {
	return slices.DeleteFunc(slices.Clone(s.note.objects), func(o plan.Object) bool {
		sight, looked := s.note.looked[o.ID]
		_, written := s.applied.Versions[o.ID] // of kinds that only expressions judge there is no Live
		return looked && sight.Healthy && !written && sight.Version == s.observed[o.ID].ResourceVersion
	})
}

// first are the objects to look at when nothing was compared: those that were not
// healthy, those that changed since, and those that were put back just now.
func (s *state) first() []plan.Object {
	wanted := map[inventory.ID]bool{}
	for _, object := range s.note.unhealthy {
		wanted[object.ID] = true
	}
	for _, id := range s.found.Changed {
		wanted[id] = true
	}
	for id := range s.putBack() {
		wanted[id] = true
	}
	var list []plan.Object
	for _, object := range s.note.objects {
		if wanted[object.ID] {
			list = append(list, object)
		}
	}
	return list
}

// watched tells that watches tell of all objects whose health matters: not of those
// of others that spec.healthChecks names.
func (s *state) watched() bool { return s.found.Watched && len(s.object.Spec.HealthChecks) == 0 }

// rest are the objects to look at when the first ones are healthy: none where watches
// would have told.
func (s *state) rest(first []plan.Object) []plan.Object {
	if s.watched() {
		return nil
	}
	return without(s.note.objects, first)
}
