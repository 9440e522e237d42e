// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// Seen is what a reader without the controller's memory knows of a rollout.
type Seen struct {
	Rollout  *v1alpha1.BundleRollout
	Strategy *rollout.Strategy
	// Update and Current are revisions of the status, or those that a run would have.
	Update  rollout.Revision
	Current *rollout.Revision
	// Clusters and Children are by the name of the cluster.
	Clusters []revision.Cluster
	Children map[string]*v1alpha1.BundleDeployment
	Now      time.Time
}

// Input is what a decision would be made from. It is near to that of the controller, with two differences: a cluster that has the
// revision, and the present kubeconfig, counts as having its spec, because the spec is not rendered; and it counts as unreachable since its BundleDeployment
// stopped to be ready.
func (s *Seen) Input() *rollout.Input {
	status := &s.Rollout.Status
	in := &rollout.Input{
		Namespace: s.Rollout.Namespace, Rollout: s.Rollout.Name, UID: string(s.Rollout.UID), Now: s.Now, Strategy: s.Strategy, Suspended: s.Rollout.Spec.Suspend,
		Update: s.Update, Current: s.Current, Return: rollout.Returns(status), Run: status.Run, Starts: status.Starts,
		Starting: status.Starting, Waves: status.Waves,
		Abandon: s.Rollout.Spec.Removal.WhenClusterGone == v1alpha1.GoneClusterAbandon, Known: true,
	}
	for i := range s.Clusters {
		in.Clusters = append(in.Clusters, s.fact(&s.Clusters[i]))
	}
	slices.SortFunc(in.Clusters, func(a, b rollout.Fact) int { return strings.Compare(a.Name, b.Name) })
	return in
}

// otherSpec is the hash of a spec that no BundleDeployment has.
const otherSpec = "other"

func (s *Seen) fact(cluster *revision.Cluster) rollout.Fact {
	fact := rollout.Fact{Name: cluster.Name, Wave: s.Strategy.WaveOf(cluster.Labels), Wanted: otherSpec, WantedCurrent: otherSpec}
	if fact.Wave >= 0 {
		fact.Order = cluster.Labels[s.Strategy.Waves[fact.Wave].OrderBy]
	}
	child := s.Children[cluster.Name]
	if child == nil {
		return fact
	}
	fact.Child = rollout.ChildOf(child)
	fact.ClusterUID, fact.ClusterCreated = string(cluster.UID), cluster.Created
	fact.OtherKubeConfig = !cluster.IsReachedBy(child)
	if fact.Child.Revision == s.Update.Name && !fact.OtherKubeConfig {
		fact.Wanted = fact.Child.SpecHash
	}
	if s.Current != nil && fact.Child.Revision == s.Current.Name && !fact.OtherKubeConfig {
		fact.WantedCurrent = fact.Child.SpecHash
	}
	if fact.Child.Unreachable() || cluster.Unhealthy {
		fact.UnreachableSince = fact.Child.ReadySince
	}
	return fact
}
