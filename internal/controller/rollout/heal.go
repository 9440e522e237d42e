// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/children"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// heal writes BundleDeployments back that others changed, each as it was rendered for its own revision, also while the rollout is
// suspended or stands still. People may add fields, such as suspend. One that is rendered differently now, because its cluster has
// other labels, is left alone: that goes through the waves.
func (r *Reconciler) heal(ctx context.Context, s *state) (pipeline.Outcome, error) {
	s.memory.rendered.Begin(s.object.Generation)
	s.memory.rendered.Forget(func(cluster string) bool { return s.children[cluster] != nil })
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(s.children)) {
		child := s.children[name]
		cluster, selected := s.clusters[name]
		starts := slices.ContainsFunc(s.object.Status.Starting, func(e v1alpha1.RolloutStart) bool { return e.Cluster == name })
		if !selected || starts || !child.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.healOne(ctx, s, child, &cluster); err != nil && !errors.Is(err, children.ErrForeign) {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, nil
}

func (r *Reconciler) healOne(ctx context.Context, s *state, child *v1alpha1.BundleDeployment, cluster *revision.Cluster) error {
	from, err := r.load(ctx, s, child.Annotations[v1alpha1.RolloutRevisionAnnotation])
	if from == nil || err != nil {
		return err
	}
	known := child.Annotations[v1alpha1.RolloutSpecAnnotation]
	if s.memory.rendered.Intact(cluster.Name, child.ResourceVersion, known) {
		if hash, err := s.memory.rendered.Hash(from, cluster, rendered.StartedWith(child)); err == nil && hash == known {
			return nil
		}
	}
	wanted, hash, err := from.Render(cluster, rendered.StartedWith(child))
	if err != nil || hash != known && !sameSpec(known, wanted, child) {
		return nil //nolint:nilerr // it is pending work
	}
	intact := func(live *v1alpha1.BundleDeployment) bool { return live == nil || wanted.IsIn(live) }
	if hash == known && intact(child) {
		s.memory.rendered.Keep(cluster.Name, child.ResourceVersion, hash)
		return nil
	}
	wanted.Annotations = children.Annotated(wanted.Annotations, children.OfStart(child))
	wanted.Annotations[v1alpha1.RolloutSpecAnnotation] = hash
	if err := r.children(s).Apply(ctx, cluster.Name, wanted, func(live *v1alpha1.BundleDeployment) bool {
		return intact(live) || !maps.Equal(children.OfStart(live), children.OfStart(child)) // it was started meanwhile
	}); err != nil {
		return fmt.Errorf("writing bundledeployment %s back, which was changed: %w", client.ObjectKeyFromObject(child), err)
	}
	return nil
}

// sameSpec tells whether a BundleDeployment has what is rendered for it, though its hash has another form: another version of Satchel
// wrote it. It is written again with the hash of the present form, and not started.
func sameSpec(hash string, wanted *revision.Child, child *v1alpha1.BundleDeployment) bool {
	return !revision.SameForm(hash) && wanted.IsIn(child)
}
