// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// DefaultRetention is long enough to look up who decided what.
const DefaultRetention = 30 * 24 * time.Hour

// Bounds of the pause between two collections, which is a tenth of the retention otherwise.
const (
	shortestPause = time.Minute
	longestPause  = time.Hour
)

// Collector deletes BundleApprovals of rollouts that have ended. It lists from the cache: at rest it sends no request.
type Collector struct {
	Client client.Client
	// Live reads metadata that the cache does not have.
	Live    client.Reader
	Manager string
	// Retention is how long they are kept after they have ended.
	Retention time.Duration
	Now       func() time.Time

	// kept are approvals that may not be deleted because of their metadata, in the version that was read.
	kept map[types.UID]string
}

// Start implements manager.Runnable. The leader runs it.
func (c *Collector) Start(ctx context.Context) error {
	pause := time.NewTicker(min(max(c.Retention/10, shortestPause), longestPause))
	defer pause.Stop()
	for {
		if err := c.Collect(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "bundleapprovals of rollouts that have ended cannot be deleted")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

// Collect deletes what may be deleted now.
func (c *Collector) Collect(ctx context.Context) error {
	var all v1alpha1.BundleApprovalList
	if err := c.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("listing bundleapprovals: %w", err)
	}
	now, known := c.Now(), c.kept
	c.kept = map[types.UID]string{}
	var problems []error
	for i := range all.Items {
		one := &all.Items[i]
		ended, err := c.ended(ctx, one, now)
		switch created := one.CreationTimestamp.Time; {
		case err != nil:
			problems = append(problems, err)
			continue
		case ended.IsZero():
			continue
		case ended.Before(created):
			ended = created // a Git tool created an expired one again: it is not deleted more than once in a retention
		}
		switch {
		case now.Before(ended.Add(c.Retention)):
		case known[one.UID] == one.ResourceVersion:
			c.kept[one.UID] = one.ResourceVersion
		default:
			problems = append(problems, c.delete(ctx, one, now))
		}
	}
	return errors.Join(problems...)
}

// ended is when a decision about a rollout ended; zero while it has not, or has to be kept. The first line that holds decides.
//
//	it is not about a rollout, or is being deleted           keep
//	the status of the rollout names it, or its plan          keep
//	it was used                                              then
//	it has expired                                           then
//	else                                                     keep
//
// A denial that has not expired is kept: the status of a rollout may be lost, and its plans come back then.
func (c *Collector) ended(ctx context.Context, one *v1alpha1.BundleApproval, now time.Time) (time.Time, error) {
	if one.Spec.Rollout == "" || !one.DeletionTimestamp.IsZero() {
		return time.Time{}, nil
	}
	rollout := new(v1alpha1.BundleRollout)
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: one.Namespace, Name: one.Spec.Rollout}, rollout)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return time.Time{}, fmt.Errorf("reading bundlerollout %s/%s: %w", one.Namespace, one.Spec.Rollout, err)
	case err == nil && refersTo(&rollout.Status, one):
		return time.Time{}, nil
	case one.Status.ConsumedTime != nil:
		return one.Status.ConsumedTime.Time, nil
	case expired(one, now):
		return one.Spec.ExpirationTime.Time, nil
	}
	return time.Time{}, nil
}

func expired(one *v1alpha1.BundleApproval, now time.Time) bool {
	return one.Spec.ExpirationTime != nil && !now.Before(one.Spec.ExpirationTime.Time)
}

// refersTo tells whether the status has the decision, or its plan, in a wave, a removal or the history.
func refersTo(status *v1alpha1.BundleRolloutStatus, one *v1alpha1.BundleApproval) bool {
	if status.Removal != nil && status.Removal.Plan == one.Spec.Plan {
		return true
	}
	for i := range status.Waves {
		if wave := &status.Waves[i]; wave.Plan == one.Spec.Plan || wave.Approval == one.Name || wave.EndApproval == one.Name {
			return true
		}
	}
	return slices.ContainsFunc(status.History, func(record v1alpha1.RolloutRecord) bool {
		return slices.ContainsFunc(record.Approvals, func(used v1alpha1.RolloutApproval) bool { return used.Name == one.Name })
	})
}

// delete deletes a decision that has ended, unless what delivers manifests from Git would create it again, unused.
func (c *Collector) delete(ctx context.Context, one *v1alpha1.BundleApproval, now time.Time) error {
	key := client.ObjectKeyFromObject(one)
	if !expired(one, now) {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleApprovalKind))
		err := c.Live.Get(ctx, key, live)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading bundleapproval %s: %w", key, err)
		case err != nil:
			return nil
		case !c.createdByCommand(live.ManagedFields):
			c.kept[one.UID] = live.ResourceVersion
			return nil
		}
	}
	err := c.Client.Delete(ctx, one, client.Preconditions{UID: &one.UID, ResourceVersion: &one.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it changed: the next collection sees it as it is
		return nil
	case err != nil:
		return fmt.Errorf("deleting bundleapproval %s: %w", key, err)
	}
	ctrl.LoggerFrom(ctx).Info("deleted a BundleApproval that has ended", "namespace", one.Namespace, "name", one.Name, "rollout", one.Spec.Rollout, "plan", one.Spec.Plan)
	return nil
}

// createdByCommand tells whether satchel rollout approve created an object, and only this controller has changed it, in its status.
func (c *Collector) createdByCommand(fields []metav1.ManagedFieldsEntry) bool {
	created := false
	for _, entry := range fields {
		switch {
		case entry.Manager == v1alpha1.CommandFieldManager && entry.Subresource == "":
			created = true
		case entry.Manager == c.Manager && entry.Subresource == "status":
		default:
			return false
		}
	}
	return created
}
