// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/identity"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// takeover is how long after the other name of its cluster is gone a BundleDeployment that was refused the objects may need to have them.
const takeover = 2 * time.Minute

// Memory is what a process remembers of names of clusters. The zero value is ready for use.
type Memory struct {
	left   map[string]time.Time // since when names with a BundleDeployment are no longer selected
	shared map[string]time.Time // when the clusters of names had another name last
}

// note keeps the names that are not selected.
func (m *Memory) note(children map[string]*v1alpha1.BundleDeployment, clusters map[string]revision.Cluster, now time.Time) {
	left := map[string]time.Time{}
	for name := range children {
		if _, selected := clusters[name]; selected {
			continue
		}
		left[name] = now
		if since, known := m.left[name]; known {
			left[name] = since
		}
	}
	m.left = left
}

// Duplicates are the selected names of clusters that have another name as well, or had until a moment ago while their BundleDeployment was
// not reconciled since: it is refused the objects until then, which is no failure of the revision.
func (m *Memory) Duplicates(names map[string]identity.Name, children map[string]*v1alpha1.BundleDeployment, now time.Time) map[string]bool {
	duplicates := identity.Duplicates(names)
	if m.shared == nil {
		m.shared = map[string]time.Time{}
	}
	for name := range duplicates {
		m.shared[name] = now
	}
	for name, at := range m.shared {
		child := children[name]
		switch {
		case child == nil, now.Sub(at) > takeover:
			delete(m.shared, name)
		case !duplicates[name] && rollout.ChildOf(child).Reason == v1alpha1.ReasonPlanRefused:
			duplicates[name] = true
		}
	}
	return duplicates
}

// Names are what is known of the names of remote clusters: those that are selected for a wave, and those that have a BundleDeployment.
func (m *Memory) Names(
	children map[string]*v1alpha1.BundleDeployment, clusters map[string]revision.Cluster, strategy *rollout.Strategy, now time.Time,
) map[string]identity.Name {
	m.note(children, clusters, now)
	names := map[string]identity.Name{}
	for name := range clusters {
		if cluster := clusters[name]; cluster.KubeConfig != nil && strategy.WaveOf(cluster.Labels) != rollout.Excluded {
			names[name] = identity.Name{Selected: true}
		}
	}
	for name, child := range children {
		one, inWave := names[name]
		if !effective.IsRemote(child.Spec.Target.ClusterReference) && !inWave {
			continue
		}
		_, one.Selected = clusters[name]
		one.Left = m.left[name]
		one.Created = child.CreationTimestamp.Time
		seen := rollout.ChildOf(child)
		if child.Status.Inventory != nil && (!one.Selected || !seen.OtherTarget) {
			one.Target, one.Server = child.Status.Inventory.Target, child.Status.Internal.Server
		}
		isPlanned := seen.Ready || seen.ApprovalPending || seen.Reason == v1alpha1.ReasonPlanRefused
		one.Compared = one.Target != "" && (child.Status.Applied.Revision != "" || isPlanned && seen.ObservedGeneration == seen.Generation)
		names[name] = one
	}
	return names
}

// Leavers are the clusters with a BundleDeployment that are no longer selected. One of which another name with the same
// server takes over does not count for the limit, since it is not emptied. One of which a cluster with another server claims the identity does.
func Leavers(children map[string]*v1alpha1.BundleDeployment, clusters map[string]revision.Cluster, moves map[string]identity.Leaving, of types.UID) []rollout.Leaver {
	var leavers []rollout.Leaver
	for name, child := range children {
		if _, selected := clusters[name]; !selected {
			leavers = append(leavers, rollout.Leaver{
				Name: name, Wave: rollout.Excluded, Removing: !child.DeletionTimestamp.IsZero(), Stuck: Stuck(child),
				Released: Released(child, of) != "" || moves[name].Proven, Waits: moves[name].Waits != "",
			})
		}
	}
	slices.SortFunc(leavers, func(a, b rollout.Leaver) int { return cmp.Compare(a.Name, b.Name) })
	return leavers
}

// Redirects tells whether the removal of a BundleDeployment reaches its cluster as the one of the successor does. With another server that
// only claims to be the same cluster, it does when nothing else leads to the cluster and no hook is left: hooks may contain Secrets.
func Redirects(child *v1alpha1.BundleDeployment, leaving identity.Leaving) bool {
	if leaving.Successor == "" || leaving.Waits != "" {
		return false
	}
	return leaving.Proven || LacksCluster(child) && (child.Status.Hooks == nil || child.Status.Hooks.OnDelete == 0)
}

// Redirect has the removal of a BundleDeployment reach its cluster as the one does that takes over: the Secret of the former name may be gone. The
// deployment controller removes and releases nothing if that is another cluster than the one in the inventory.
func (w Writer) Redirect(ctx context.Context, child, successor *v1alpha1.BundleDeployment) error {
	to := &successor.Spec
	if equality.Semantic.DeepEqual(child.Spec.Target.ClusterReference, to.Target.ClusterReference) && child.Spec.Target.ServiceAccountName == to.Target.ServiceAccountName {
		return nil
	}
	changed := child.DeepCopy()
	changed.Spec.Target.ClusterReference = *to.Target.ClusterReference.DeepCopy()
	changed.Spec.Target.ServiceAccountName = to.Target.ServiceAccountName
	if err := w.Client.Patch(ctx, changed, client.MergeFrom(child), client.FieldOwner(w.Manager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("having bundledeployment %s reach its cluster by the kubeconfig of %s: %w", client.ObjectKeyFromObject(child), successor.Name, err)
	}
	return nil
}
