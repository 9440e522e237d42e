// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/children"
	"github.com/satchel-dev/satchel/internal/controller/rollout/inputs"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// atOnce is how many BundleDeployments are written at once.
const atOnce = 16

// finishStarts carries out starts that this process, or one before it, has recorded and that are not seen yet.
func (r *Reconciler) finishStarts(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.object.Spec.Suspend {
		return pipeline.Continue, nil
	}
	return pipeline.Continue, r.carryOut(ctx, s, s.approvals.WithoutWithdrawn(s.object.Status.Starting, &s.object.Status, s.strategy, s.clusters))
}

// start carries out the starts that were just recorded.
func (r *Reconciler) start(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if len(s.decision.Starts) > 0 {
		s.again = settles // the cache shows them long before
	}
	return pipeline.Continue, r.carryOut(ctx, s, s.decision.Starts)
}

// carryOut writes the BundleDeployments of recorded starts. One that the API server refuses for good is no longer recorded: it is
// certain that it was not written.
func (r *Reconciler) carryOut(ctx context.Context, s *state, entries []v1alpha1.RolloutStart) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	results := make([]error, len(entries))
	for i, entry := range entries {
		cluster, selected := s.clusters[entry.Cluster]
		from, err := r.load(ctx, s, entry.Revision)
		switch {
		case err != nil:
			_ = group.Wait() // it returns no error
			return err
		case !selected, from == nil: // it left meanwhile
			s.drop(entry)
			continue
		}
		group.Go(func() error {
			results[i] = r.startOne(ctx, s, entry, from, &cluster)
			return nil
		})
	}
	_ = group.Wait() // it returns no error
	return s.sort(entries, results)
}

// sort tells starts that failed, and are tried again, from those that the API server refuses for good.
func (s *state) sort(entries []v1alpha1.RolloutStart, results []error) error {
	var problems []error
	var lacks *inputs.MissingError
	for i, err := range results {
		entry := entries[i]
		switch {
		case err == nil:
		case errors.Is(err, children.ErrForeign), errors.As(err, &lacks):
			s.drop(entry) // the next decision finds out, and says so
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
			s.drop(entry)
			cluster := s.clusters[entry.Cluster]
			if hash, failed := s.hashOf(s.revisions[entry.Revision], &cluster); failed == nil {
				s.memory.refused[refusal{entry.Cluster, hash}] = pipeline.Shorten(err.Error(), 1024)
			}
		default:
			problems = append(problems, err)
		}
		if err != nil {
			s.again = time.Second
		}
	}
	return errors.Join(problems...)
}

// drop removes an entry from the record.
func (s *state) drop(entry v1alpha1.RolloutStart) {
	s.object.Status.Starting = slices.DeleteFunc(s.object.Status.Starting, func(one v1alpha1.RolloutStart) bool { return one == entry })
}

// startOne writes the BundleDeployment of a start, unless it shows that start, or a later one.
func (r *Reconciler) startOne(ctx context.Context, s *state, entry v1alpha1.RolloutStart, from *rendered.Revision, cluster *revision.Cluster) error {
	child, err := from.Child(cluster)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	digests, err := r.copyOwnInputs(ctx, s, cluster.Name, child)
	if err != nil {
		return fmt.Errorf("starting cluster %s with revision %s: %w", cluster.Name, from.Name, err)
	}
	_, hash, err := rendered.Complete(child, digests)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	child.Annotations = children.Annotated(child.Annotations, map[string]string{
		v1alpha1.RolloutRevisionAnnotation: from.Name, v1alpha1.RolloutSpecAnnotation: hash,
		v1alpha1.RolloutStartAnnotation:   strconv.FormatInt(entry.Start, 10),
		v1alpha1.RolloutStartedAnnotation: r.Now().UTC().Format(time.RFC3339),
	})
	children.AnnotateCluster(child, s.children[cluster.Name], cluster)
	err = r.children(s).Apply(ctx, cluster.Name, child, func(live *v1alpha1.BundleDeployment) bool {
		return live != nil && rollout.ChildOf(live).Start >= entry.Start
	})
	if err != nil {
		return fmt.Errorf("starting cluster %s with revision %s: %w", cluster.Name, from.Name, err)
	}
	return nil
}

// look asks clusters to reconcile, so that the next wave does not begin with what was seen long ago.
func (r *Reconciler) look(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if len(s.decision.Look) == 0 {
		return pipeline.Continue, nil
	}
	token, err := time.Parse(time.RFC3339, s.decision.LookToken)
	if err != nil {
		return pipeline.Stop, fmt.Errorf("reading the time since which clusters have to reconcile: %w", err)
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, name := range s.decision.Look {
		child := s.children[name]
		if asked, err := time.Parse(time.RFC3339, pipeline.Requested(child)); err == nil && !asked.Before(token) && !asked.After(s.now) {
			continue // it was asked
		}
		group.Go(func() error {
			changed := child.DeepCopy()
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, meta.ReconcileRequestAnnotation, s.decision.LookToken)
			if err := r.Client.Patch(ctx, changed, client.MergeFrom(child), client.FieldOwner(FieldManager)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("asking bundledeployment %s/%s to reconcile: %w", child.Namespace, child.Name, err)
			}
			return nil
		})
	}
	return pipeline.Continue, group.Wait()
}

// children writes the BundleDeployments of a rollout.
func (r *Reconciler) children(s *state) children.Writer {
	return children.Writer{Client: r.Client, Live: r.APIReader, Manager: FieldManager, Rollout: s.key()}
}
