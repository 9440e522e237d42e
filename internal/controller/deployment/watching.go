// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
)

// accountExists tells whether a ServiceAccount exists; one on another cluster is
// assumed to, since that cluster checks it.
func (r *Reconciler) accountExists(ctx context.Context, id tenant.Identity) (bool, error) {
	if id.Remote() {
		return true, nil
	}
	return r.Tenants.AccountExisted(ctx, id)
}

// subscribe passes the final state of the objects to the watches, which report later
// changes.
func (r *Reconciler) subscribe(s *state, err error) {
	key, of := s.Key(), s
	if s.kept != nil {
		of = s.kept
	}
	switch {
	case s.resolved.Access.Client == nil && failure.Of(err).Reason == v1alpha1.ReasonAccountNotFound:
		r.watches.Drop(key)
	case of.resolved.Due && of.decided.Plan != nil && of.delivered.Applied != nil:
		r.watches.Set(key, of.subscription())
	case s.delivered.Repaired != nil:
		r.watches.Update(key, s.delivered.Repaired.Left)
	}
	s.settled.Gaps = r.watches.Gaps(key)
	r.follow(s, err)
	if of.settled.Health != nil {
		r.watches.Looked(key, of.settled.Health.Seen)
	}
}

// unwatch ends all watches of a deployment.
func (r *Reconciler) unwatch(key drift.Key) {
	r.watches.Drop(key)
	r.names.Drop(key)
}

// expectation lists the objects that are about to be created.
func (s *state) expectation() drift.Subscription {
	subscription := s.ownSubscription()
	for _, action := range s.decided.Plan.Actions() {
		if action.Verb == plan.Create && !action.Untracked {
			subscription.Objects = append(subscription.Objects, drift.Object{Entry: inventory.Entry{ID: action.ID}, Resource: action.Resource})
		}
	}
	return subscription
}

// ownSubscription is the subscription of the deployment, without objects.
func (s *state) ownSubscription() drift.Subscription {
	return drift.Subscription{
		Client: s.resolved.Access.Client, Owner: s.Owner, Target: s.listed.Inventory.Target,
		Drift: s.Object.Spec.DriftModeOrDefault() != v1alpha1.DriftDisabled, DriftResolved: s.Warns(),
	}
}

// subscription is the subscription to the objects of the plan.
func (s *state) subscription() drift.Subscription {
	subscription := s.ownSubscription()
	healthy := map[inventory.ID]bool{}
	for _, object := range s.note.Health.Objects {
		healthy[object.ID] = true
	}
	for _, action := range s.decided.Plan.Actions() {
		entry, listed := s.listed.Inventory.Get(action.ID)
		if action.Untracked || !listed || !entry.Confirmed() {
			continue
		}
		subscription.Objects = append(subscription.Objects, drift.Object{
			Entry: entry, Resource: action.Resource, Version: s.version(action.ID),
			Health: healthy[action.ID], Looked: s.note.Health.Looked[action.ID].Version,
		})
	}
	return subscription
}

// version is the resource version at which an object was written or compared.
func (s *state) version(id inventory.ID) string {
	if version := s.delivered.Applied.Versions[id]; version != "" {
		return version
	}
	return s.decided.Observed[id].ResourceVersion
}

// news are the objects to check after a full comparison: those that were written, and
// those that changed since they were last seen healthy.
func (s *state) news() []plan.Object {
	return slices.DeleteFunc(slices.Clone(s.note.Health.Objects), func(o plan.Object) bool {
		sight, looked := s.note.Health.Looked[o.ID]
		_, written := s.delivered.Applied.Versions[o.ID] // of kinds that only expressions judge there is no Live
		return looked && sight.Healthy && !written && sight.Version == s.decided.Observed[o.ID].ResourceVersion
	})
}

// first are the objects to check without a full comparison: those that were not
// healthy, those that changed since, and those that were repaired in this reconcile.
func (s *state) first() []plan.Object {
	wanted := map[inventory.ID]bool{}
	for _, object := range s.note.Health.Unhealthy {
		wanted[object.ID] = true
	}
	for _, id := range s.resolved.Found.Changed {
		wanted[id] = true
	}
	for id := range s.restored() {
		wanted[id] = true
	}
	var list []plan.Object
	for _, object := range s.note.Health.Objects {
		if wanted[object.ID] {
			list = append(list, object)
		}
	}
	return list
}

// watched tells that all objects with health checks are watched; those of
// spec.healthChecks are not.
func (s *state) watched() bool {
	return s.resolved.Found.Watched && len(s.Object.Spec.HealthChecks) == 0
}

// rest are the objects to check when the first ones are healthy: none if all are
// watched.
func (s *state) rest(first []plan.Object) []plan.Object {
	if s.watched() {
		return nil
	}
	return without(s.note.Health.Objects, first)
}
