// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/announce"
	"github.com/satchel-dev/satchel/internal/controller/rollout/collect"
	"github.com/satchel-dev/satchel/internal/controller/rollout/removal"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// removeLeavers removes the clusters that were decided on and recorded.
func (r *Reconciler) removeLeavers(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if err := r.release(ctx, s); err != nil {
		return pipeline.Stop, err
	}
	if err := r.redirect(ctx, s); err != nil {
		return pipeline.Stop, err
	}
	for _, name := range s.removal.Remove {
		if err := r.removals().Delete(ctx, s.children[name], s.object.Spec.Removal.Policy); err != nil {
			return pipeline.Stop, err
		}
	}
	return pipeline.Continue, r.abandon(ctx, s)
}

// redirect has the removals of clusters that have another name now go on through that.
func (r *Reconciler) redirect(ctx context.Context, s *state) error {
	for name, leaving := range s.leaving {
		child := s.children[name]
		if !removal.Redirects(child, leaving) || child.DeletionTimestamp.IsZero() && !slices.Contains(s.removal.Remove, name) {
			continue
		}
		if err := r.removals().Redirect(ctx, child, s.children[leaving.Successor]); err != nil {
			return err
		}
	}
	return nil
}

// release notes at the BundleDeployments of approved removals which plan was approved, before any of them is removed: the approval
// stays one of exactly these clusters. One that is selected again does not keep it.
func (r *Reconciler) release(ctx context.Context, s *state) error {
	for _, name := range s.removal.Release {
		if err := r.removals().Release(ctx, s.children[name], s.object.UID, s.object.Status.Removal.Plan); err != nil {
			return err
		}
		s.again = time.Second
	}
	for name, child := range s.children {
		if _, selected := s.clusters[name]; selected && child.Annotations[v1alpha1.RolloutReleasedAnnotation] != "" {
			if err := r.removals().Release(ctx, child, "", ""); err != nil {
				return err
			}
		}
	}
	_, err := r.consume(ctx, s)
	return err
}

// abandon leaves the objects on clusters that do not exist any more, where the rollout asks for it: of those that were rebuilt the
// BundleDeployment is replaced, and a removal that waits for the Secret or the ClusterProfile of one does not go on.
func (r *Reconciler) abandon(ctx context.Context, s *state) error {
	if s.object.Spec.Removal.WhenClusterGone != v1alpha1.GoneClusterAbandon {
		return nil
	}
	replaced, err := r.removals().ReplaceRebuilt(ctx, s.decision.Rebuilt, s.children)
	announce.Replaced(r.Events, s.object, replaced)
	if err != nil {
		return err
	}
	account, err := revision.AccountOf(&s.object.Spec)
	if err != nil {
		return err
	}
	return r.removals().AbandonGone(ctx, s.children, func(child *v1alpha1.BundleDeployment) (bool, error) {
		if leaving := s.leaving[child.Labels[v1alpha1.ClusterLabel]]; leaving.Waits != "" || removal.Redirects(child, leaving) {
			return false, nil // another name may lead there
		}
		return r.Clusters.Gone(ctx, child.Namespace, account, effective.RemoteCluster(child.Spec.Target.ClusterReference))
	})
}

func (r *Reconciler) removals() removal.Writer {
	return removal.Writer{Client: r.Client, Manager: FieldManager}
}

// remove ends a rollout that is being deleted. With the policy Orphan its BundleDeployments stay, and go on reconciling with the
// pinned sources that they name. With Delete they are deleted in the reverse order of the waves.
func (r *Reconciler) remove(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.object.Spec.DeletionPolicy == v1alpha1.DeletionDelete {
		left, err := r.removeChildren(ctx, s)
		if err != nil || left > 0 {
			s.removing(left)
			return pipeline.Stop, err
		}
		if err := r.removeRevisions(ctx, s, func(string) bool { return false }); err != nil {
			return pipeline.Stop, err
		}
	}
	if err := r.markOrphans(ctx, s); err != nil {
		return pipeline.Stop, err
	}
	changed := s.object.DeepCopy()
	controllerutil.RemoveFinalizer(changed, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(s.object.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(FieldManager)); client.IgnoreNotFound(err) != nil {
		return pipeline.Stop, pipeline.MarkStale(err)
	}
	s.gone = true
	return pipeline.Stop, nil
}

// markOrphans marks the BundleDeployments that stay, so that a rollout of the same name does not take them over without an approval.
func (r *Reconciler) markOrphans(ctx context.Context, s *state) error {
	var err error
	if s.children, err = r.children(s).Stored(ctx); err != nil {
		return err
	}
	return r.keeper(s).MarkOwn(ctx)
}

// removeChildren deletes BundleDeployments, as many at once as their wave allows, and tells how many there still are.
func (r *Reconciler) removeChildren(ctx context.Context, s *state) (left int, _ error) {
	s.memory.doubt(s.now) // none may be missed
	if err := r.readChildren(ctx, s); err != nil {
		return 0, err
	}
	strategy, err := rollout.ReadStrategy(&s.object.Spec.Strategy)
	if err != nil {
		strategy = &rollout.Strategy{} // one after the other
	}
	s.strategy = strategy
	_ = r.Clusters.Renew(ctx, &s.memory.clusters, s.now, s.object) // without a list, those that are known are used
	var leavers []rollout.Leaver
	for name, child := range s.children {
		leaver := rollout.Leaver{Name: name, Wave: rollout.Excluded, Removing: !child.DeletionTimestamp.IsZero(), Stuck: removal.Stuck(child)}
		if cluster, known := s.memory.clusters.Clusters[name]; known {
			leaver.Wave = strategy.WaveOf(cluster.Labels)
		}
		leavers = append(leavers, leaver)
	}
	all := intstr.FromString("100%")
	decided, err := rollout.DecideRemoval(&rollout.RemovalInput{
		Now: s.now, Strategy: strategy, Removal: &v1alpha1.RolloutRemoval{Limit: &all}, Known: true, Selected: 1, Leavers: leavers,
	})
	if err != nil {
		return len(leavers), err
	}
	for _, name := range decided.Remove {
		if err := r.removals().Delete(ctx, s.children[name], v1alpha1.DeletionDelete); err != nil {
			return len(leavers), err
		}
	}
	return len(leavers), nil
}

// collectPause is the least time between two removals of unused revisions.
const collectPause = time.Minute

// collect removes stored revisions that nothing uses any more.
func (r *Reconciler) collect(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.now.Sub(s.memory.collected) < collectPause {
		return pipeline.Continue, nil
	}
	s.memory.collected = s.now
	names := slices.Collect(maps.Keys(s.revisions)) // one that is being fetched, for instance
	if s.wanted != nil {
		names = append(names, s.wanted.Name)
	}
	used := collect.Used(s.object, names, s.children)
	return pipeline.Continue, r.removeRevisions(ctx, s, func(object string) bool { return used[object] })
}

// removeRevisions deletes the stored revisions, pinned sources and copies of inputs that are not in use.
func (r *Reconciler) removeRevisions(ctx context.Context, s *state, used func(object string) bool) error {
	keeper, err := r.inputs(s)
	if err != nil {
		keeper.Account.ServiceAccount = "" // copies stay: an invalid template does not keep a rollout from being deleted
	}
	removed, err := collect.Revisions{Client: r.Client, Live: r.APIReader, Inputs: keeper, Quiet: len(s.object.Status.Starting) == 0}.Remove(ctx, s.key(), used)
	for _, name := range removed {
		delete(s.memory.data, name)
	}
	return err
}
