// SPDX-License-Identifier: Apache-2.0

// Package approval reads the BundleApprovals of a rollout, and marks those that were used. Which plan needs one is decided in
// internal/rollout.
package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// ErrWithdrawn says that an approval was deleted before it was marked as used.
var ErrWithdrawn = errors.New("it was deleted before anything began because of it")

// Decisions are the BundleApprovals of a rollout, the oldest first.
type Decisions []v1alpha1.BundleApproval

// List reads the decisions about a rollout, but for those that are being deleted.
func List(ctx context.Context, reader client.Reader, of types.NamespacedName) (Decisions, error) {
	var list v1alpha1.BundleApprovalList
	if err := reader.List(ctx, &list, client.InNamespace(of.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the bundleapprovals of bundlerollout %s: %w", of, err)
	}
	found := slices.DeleteFunc(list.Items, func(one v1alpha1.BundleApproval) bool {
		return one.Spec.Rollout != of.Name || !one.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(found, func(a, b v1alpha1.BundleApproval) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

// ForDecision are the decisions as internal/rollout has them.
func (d Decisions) ForDecision() []rollout.Approval {
	var all []rollout.Approval
	for i := range d {
		one := &d[i]
		approval := rollout.Approval{
			Name: one.Name, Plan: one.Spec.Plan, Denies: one.Spec.Decision == v1alpha1.DecisionDeny,
			Consumed: one.Status.ConsumedTime != nil, Approver: one.Spec.Approver,
		}
		if one.Spec.ExpirationTime != nil {
			approval.Expires = one.Spec.ExpirationTime.Time
		}
		all = append(all, approval)
	}
	return all
}

// Has tells whether there is a decision with a name.
func (d Decisions) Has(name string) bool { return d.named(name) != nil }

func (d Decisions) named(name string) *v1alpha1.BundleApproval {
	at := slices.IndexFunc(d, func(one v1alpha1.BundleApproval) bool { return one.Name == name })
	if at < 0 {
		return nil
	}
	return &d[at]
}

// Used is a decision that something begins because of.
type Used struct {
	// Name of the BundleApproval.
	Name string
	// For is what it permits, in words.
	For string
}

// InStatus are the decisions that the status of a rollout says were used: those of waves that have begun, or were completed, and
// those of the removal of clusters, by the plans that their BundleDeployments have.
func (d Decisions) InStatus(status *v1alpha1.BundleRolloutStatus, released map[string]bool) []Used {
	var used []Used
	for i := range status.Waves {
		wave := &status.Waves[i]
		if wave.Approval != "" && wave.StartTime != nil {
			used = append(used, Used{Name: wave.Approval, For: "to start wave " + wave.Name})
		}
		if wave.EndApproval != "" && wave.CompletionTime != nil {
			used = append(used, Used{Name: wave.EndApproval, For: "to complete wave " + wave.Name})
		}
	}
	for i := range d {
		if one := &d[i]; released[one.Spec.Plan] && one.Spec.Decision == v1alpha1.DecisionApprove {
			used = append(used, Used{Name: one.Name, For: "to remove clusters"})
		}
	}
	return used
}

// WithoutWithdrawn are recorded starts but for those of waves of which the approval was deleted: these wait for another one.
func (d Decisions) WithoutWithdrawn(
	entries []v1alpha1.RolloutStart, status *v1alpha1.BundleRolloutStatus, strategy *rollout.Strategy, clusters map[string]revision.Cluster,
) []v1alpha1.RolloutStart {
	entries = slices.Clone(entries)
	if rollout.Returns(status) || status.UpdateRevision == nil {
		return entries
	}
	return slices.DeleteFunc(entries, func(entry v1alpha1.RolloutStart) bool {
		cluster, selected := clusters[entry.Cluster]
		if !selected || entry.Revision != status.UpdateRevision.Name {
			return false
		}
		name := strategy.ApprovalOf(strategy.WaveOf(cluster.Labels), status)
		return name != "" && !d.Has(name)
	})
}

// Marker marks decisions as used.
type Marker struct {
	Client  client.Client
	Live    client.Reader
	Manager string
}

// mostConflicts is how often a decision is marked again that changed meanwhile.
const mostConflicts = 5

// Consume marks a decision as used, unless it is. It tells whether it did. ErrWithdrawn: it was deleted.
func (m Marker) Consume(ctx context.Context, all Decisions, name string, now time.Time) (bool, error) {
	one := all.named(name)
	if one == nil || one.Status.ConsumedTime != nil {
		return false, nil
	}
	key := client.ObjectKeyFromObject(one)
	for conflicts := 0; ; conflicts++ {
		before := one.DeepCopy()
		one.Status.ConsumedTime = new(pipeline.StatusTime(now))
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		err := m.Client.Status().Patch(ctx, one, patch, client.FieldOwner(m.Manager))
		switch {
		case err == nil:
			return true, nil
		case apierrors.IsNotFound(err):
			return false, fmt.Errorf("bundleapproval %s: %w", key, ErrWithdrawn)
		case !apierrors.IsConflict(err) || conflicts == mostConflicts:
			return false, fmt.Errorf("marking bundleapproval %s as consumed: %w", key, err)
		}
		err = m.Live.Get(ctx, key, one)
		switch {
		case apierrors.IsNotFound(err), err == nil && (one.UID != before.UID || !one.DeletionTimestamp.IsZero()):
			return false, fmt.Errorf("bundleapproval %s: %w", key, ErrWithdrawn)
		case err != nil:
			return false, fmt.Errorf("reading bundleapproval %s: %w", key, err)
		case one.Status.ConsumedTime != nil:
			return false, nil
		}
	}
}

// Wake is the rollout that a decision is about.
func Wake(_ context.Context, object client.Object) []reconcile.Request {
	decision, isApproval := object.(*v1alpha1.BundleApproval)
	if !isApproval || decision.Spec.Rollout == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: decision.Namespace, Name: decision.Spec.Rollout}}}
}
