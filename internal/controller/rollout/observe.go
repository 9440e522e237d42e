// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"maps"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/fleet"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/identity"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// listClusters lists the clusters. Where that fails, those that were listed last are kept, and none is removed.
func (r *Reconciler) listClusters(ctx context.Context, s *state) (pipeline.Outcome, error) {
	for name := range fleet.RevisionsOf(&s.object.Status) { // what they read of the clusters is kept
		_, _ = r.load(ctx, s, name) // decide reports errors
	}
	var stored []revision.Data
	for _, kept := range s.memory.data {
		stored = append(stored, kept.data)
	}
	s.unlisted = r.Clusters.Renew(ctx, &s.memory.clusters, s.now, s.object, stored...)
	if s.clusters = s.memory.clusters.Clusters; s.clusters == nil {
		return pipeline.Stop, s.unlisted
	}
	return pipeline.Continue, nil
}

// observe reads the BundleDeployments of the rollout, and forgets recorded starts that they show.
func (r *Reconciler) observe(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if err := r.readChildren(ctx, s); err != nil {
		return pipeline.Stop, err
	}
	status := &s.object.Status
	for _, child := range s.children {
		status.Starts = max(status.Starts, rollout.ChildOf(child).Start) // the status may have been lost
	}
	status.Starting = slices.DeleteFunc(status.Starting, func(entry v1alpha1.RolloutStart) bool {
		child, found := s.children[entry.Cluster]
		return found && rollout.ChildOf(child).Start >= entry.Start
	})
	for name := range s.memory.unreachable {
		if child, found := s.children[name]; !found || !rollout.ChildOf(child).Unreachable() && !s.clusters[name].Unhealthy {
			delete(s.memory.unreachable, name)
		}
	}
	return pipeline.Continue, nil
}

// readChildren reads the BundleDeployments from the cache, or past it while that may be older than what this process, or another
// one, has written.
func (r *Reconciler) readChildren(ctx context.Context, s *state) error {
	read := r.children(s).Cached
	if s.now.Before(s.memory.liveUntil) {
		read = r.children(s).Stored
	}
	var err error
	s.children, err = read(ctx)
	return err
}

// facts are all that is known of the clusters.
func (r *Reconciler) facts(ctx context.Context, s *state, update, current *rendered.Revision) ([]rollout.Fact, error) {
	facts := make([]rollout.Fact, 0, len(s.clusters))
	names := s.memory.names.Names(s.children, s.clusters, s.strategy, s.now)
	s.duplicates = s.memory.names.Duplicates(names, s.children, s.now)
	s.leaving = identity.Compare(names, s.now)
	for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
		cluster := s.clusters[name]
		fact := rollout.Fact{Name: name, Wave: s.strategy.WaveOf(cluster.Labels), ClusterUID: string(cluster.UID), ClusterCreated: cluster.Created}
		if fact.Wave >= 0 {
			fact.Order = cluster.Labels[s.strategy.Waves[fact.Wave].OrderBy]
		}
		if hash, err := s.hashOf(update, &cluster); err != nil {
			fact.Invalid = err.Error()
		} else {
			fact.Wanted = hash
			fact.Invalid = s.memory.refused[refusal{name, hash}]
		}
		if current != nil {
			hash, err := s.hashOf(current, &cluster)
			fact.WantedCurrent = hash
			if err != nil {
				fact.InvalidCurrent = err.Error()
			}
		}
		if err := r.addChild(ctx, s, &fact); err != nil {
			return nil, err
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// addChild adds what was seen of the BundleDeployment of a cluster.
func (r *Reconciler) addChild(ctx context.Context, s *state, fact *rollout.Fact) error {
	child, found := s.children[fact.Name]
	if !found {
		foreign, err := r.children(s).Foreign(ctx, fact.Name)
		if foreign != "" {
			fact.Invalid = foreign
		}
		return err
	}
	fact.Child = rollout.ChildOf(child)
	fact.OtherKubeConfig = !s.clusters[fact.Name].IsReachedBy(child)
	fact.Duplicate = s.duplicates[fact.Name]
	s.readHash(fact, child)
	if !fact.Child.Unreachable() && !s.clusters[fact.Name].Unhealthy {
		return nil
	}
	if _, known := s.memory.unreachable[fact.Name]; !known {
		s.memory.unreachable[fact.Name] = s.now // seen for the first time
	}
	fact.UnreachableSince = s.memory.unreachable[fact.Name]
	return nil
}

// readHash reads the hash of a spec that another version of Satchel wrote in another form as the present one, if nothing but the form
// differs: such a cluster is not started.
func (s *state) readHash(fact *rollout.Fact, child *v1alpha1.BundleDeployment) {
	from := s.revisions[fact.Child.Revision]
	if from == nil || revision.SameForm(fact.Child.SpecHash) {
		return
	}
	cluster := s.clusters[fact.Name]
	if wanted, hash, err := from.Render(&cluster, rendered.StartedWith(child)); err == nil && sameSpec(fact.Child.SpecHash, wanted, child) {
		fact.Child.SpecHash = hash
	}
}
