// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/shard"
)

// Bounds of the pause between two collections, which is a tenth of the retention otherwise.
const (
	shortestPause = time.Minute
	longestPause  = time.Hour
)

// Retention is how long BundleApprovals are kept after they have ended; 0 for ever.
type Retention time.Duration

// defaultRetention is long enough to look up who decided what.
const defaultRetention = 30 * 24 * time.Hour

// BindFlags adds the flag to a set.
func (r *Retention) BindFlags(fs *pflag.FlagSet) {
	fs.DurationVar((*time.Duration)(r), "approval-retention", defaultRetention,
		"How long a BundleApproval is kept after it was used, has expired, or denies a plan that another one replaced. Then it is deleted, if it has an expirationTime that is past, or satchel approve created it. 0 for ever.")
}

// Collect adds a Collector to a manager, unless approvals are kept for ever.
func (r Retention) Collect(mgr ctrl.Manager, approvals Approvals, part shard.Shard) error {
	switch {
	case r < 0:
		return fmt.Errorf("--approval-retention is %s: it has to be at least 0", time.Duration(r))
	case r == 0:
		return nil
	}
	return mgr.Add(&Collector{Approvals: approvals, Shard: part, Retention: time.Duration(r), Now: time.Now})
}

// Collector deletes BundleApprovals that have ended. It reads the cache: at rest it sends no request.
type Collector struct {
	Approvals // Live reads metadata that the cache does not have

	// Shard selects the deployments with approvals to be deleted.
	Shard shard.Shard
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
			ctrl.LoggerFrom(ctx).Error(err, "bundleapprovals that have ended cannot be deleted")
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
	valid := validPlans(all.Items, now)
	var failures failures
	for i := range all.Items {
		one := &all.Items[i]
		ended, err := c.ended(ctx, one, valid, now)
		if created := one.CreationTimestamp.Time; !ended.IsZero() && ended.Before(created) {
			ended = created // a Git tool created an expired one again: it is not deleted more than once in a retention
		}
		switch {
		case err != nil:
			failures.add(err)
		case ended.IsZero() || now.Before(ended.Add(c.Retention)):
		case known[one.UID] == one.ResourceVersion:
			c.kept[one.UID] = one.ResourceVersion
		default:
			failures.add(c.delete(ctx, one, ended, now))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return failures.err()
}

// failures keeps the first error, and counts the others: they mostly have one cause.
type failures struct {
	first error
	more  int
}

func (f *failures) add(err error) {
	switch {
	case err == nil:
	case f.first == nil:
		f.first = err
	default:
		f.more++
	}
}

func (f *failures) err() error {
	if f.more > 0 {
		return fmt.Errorf("%w (and %d more)", f.first, f.more)
	}
	return f.first
}

// planOf is a plan in a namespace.
type planOf struct{ namespace, digest string }

// validPlans are the plans with an approval that was not used and has not expired.
func validPlans(all []v1alpha1.BundleApproval, now time.Time) map[planOf]bool {
	valid := map[planOf]bool{}
	for i := range all {
		if one := &all[i]; allows(one, one.Spec.Plan) && !expired(one, now) {
			valid[planOf{one.Namespace, one.Spec.Plan}] = true
		}
	}
	return valid
}

func expired(one *v1alpha1.BundleApproval, now time.Time) bool {
	return one.Spec.ExpirationTime != nil && !now.Before(one.Spec.ExpirationTime.Time)
}

// ended is when a decision ended; zero while it has not, or has to be kept. The first line that holds decides.
//
//	it is about a rollout, which may still need it           keep
//	another instance reconciles the deployment               keep
//	the status of the deployment refers to it                keep
//	it was used                                              then
//	it has expired                                           then
//	it denies, and another plan was executed since           then, unless an approval of the denied plan would become valid
//	else                                                     keep
func (c *Collector) ended(ctx context.Context, one *v1alpha1.BundleApproval, valid map[planOf]bool, now time.Time) (time.Time, error) {
	if one.Spec.Deployment == "" {
		return time.Time{}, nil
	}
	d := new(v1alpha1.BundleDeployment)
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: one.Namespace, Name: one.Spec.Deployment}, d)
	switch {
	case apierrors.IsNotFound(err):
		d = nil
	case err != nil:
		return time.Time{}, fmt.Errorf("reading bundledeployment %s/%s: %w", one.Namespace, one.Spec.Deployment, err)
	case !c.Shard.Owns(d) || refersTo(d, one):
		return time.Time{}, nil
	}
	switch {
	case !one.DeletionTimestamp.IsZero():
	case one.Status.ConsumedTime != nil:
		return one.Status.ConsumedTime.Time, nil
	case expired(one, now):
		return one.Spec.ExpirationTime.Time, nil
	case one.Spec.Decision == v1alpha1.DecisionDeny && d != nil && !valid[planOf{one.Namespace, one.Spec.Plan}]:
		if record := c.Proven(d); record != nil && record.Time.After(one.CreationTimestamp.Time) {
			return record.Time.Time, nil // the digest of a plan contains the plan before it, so the denied one does not come back
		}
	}
	return time.Time{}, nil
}

// refersTo tells whether a status has the decision as its pending or executed plan, the plan before that, or in its history.
func refersTo(d *v1alpha1.BundleDeployment, one *v1alpha1.BundleApproval) bool {
	if d.Status.Plan != nil && d.Status.Plan.Digest == one.Spec.Plan {
		return true
	}
	if record := d.Status.Executed; record != nil && (record.Approval == one.Name || record.Plan == one.Spec.Plan || record.Base == one.Spec.Plan) {
		return true
	}
	for _, record := range d.Status.History {
		if record.Plan == one.Spec.Plan {
			return true
		}
	}
	return false
}

// delete deletes a decision that has ended, unless it could be created again and decide again.
func (c *Collector) delete(ctx context.Context, one *v1alpha1.BundleApproval, ended, now time.Time) error {
	named := fmt.Sprintf("bundleapproval %s/%s", one.Namespace, one.Name)
	if !expired(one, now) {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleApprovalKind))
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(one), live); err != nil {
			return ignoreChanged(err, "reading "+named)
		}
		if !c.createdByCommand(live.ManagedFields) {
			c.kept[one.UID] = live.ResourceVersion
			return nil
		}
	}
	if err := c.Client.Delete(ctx, one, client.Preconditions{UID: &one.UID, ResourceVersion: &one.ResourceVersion}); err != nil {
		return ignoreChanged(err, "deleting "+named)
	}
	ctrl.LoggerFrom(ctx).Info("deleted a BundleApproval that has ended", "namespace", one.Namespace, "name", one.Name,
		"deployment", one.Spec.Deployment, "plan", one.Spec.Plan, "decision", one.Spec.Decision, "ended", ended)
	return nil
}

// ignoreChanged ignores that an object is gone or was changed: the next collection sees it as it is.
func ignoreChanged(err error, doing string) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// createdByCommand tells whether satchel approve created an object, and only this controller has changed it, in its status.
// What delivers manifests from Git would create it again, unused.
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
