// SPDX-License-Identifier: Apache-2.0

// Package approvals deletes BundleApprovals that have ended. When one has ended depends on what it is about: the controllers of
// BundleDeployments and of BundleRollouts each have a rule of their own, and the rest in common.
package approvals

import (
	"cmp"
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
	"github.com/satchel-dev/satchel/internal/controller/timeline"
)

// Bounds of the pause between two collections, which is a tenth of the retention otherwise.
const (
	shortestPause = time.Minute
	longestPause  = time.Hour
)

// Retention is how long BundleApprovals are kept after they have ended; 0 for ever. It is the value of the flag --approval-retention.
type Retention time.Duration

// defaultRetention is long enough to look up who decided what.
const defaultRetention = 30 * 24 * time.Hour

// BindFlags adds the flag to a set.
func (r *Retention) BindFlags(fs *pflag.FlagSet, usage string) {
	fs.DurationVar((*time.Duration)(r), "approval-retention", defaultRetention, usage)
}

// Collect adds a collector to a manager with this retention, unless approvals are kept for ever.
func (r Retention) Collect(mgr ctrl.Manager, collector *Collector) error {
	switch {
	case r < 0:
		return fmt.Errorf("--approval-retention is %s: it has to be at least 0", time.Duration(r))
	case r == 0:
		return nil
	}
	collector.Retention, collector.Now = time.Duration(r), timeline.Of(mgr).Now
	return mgr.Add(collector)
}

// Ended tells when an approval ended; zero while it has not, or has to be kept.
type Ended func(ctx context.Context, one *v1alpha1.BundleApproval) (time.Time, error)

// Collector deletes BundleApprovals that have ended. It lists from the cache: at rest it sends no request.
type Collector struct {
	Client client.Client
	// Live reads metadata that the cache does not have.
	Live client.Reader
	// Manager is the field manager of the controller, which marks approvals as used.
	Manager string
	// Rule is called at each collection with all approvals, and gives the rule for each of them.
	Rule func(all []v1alpha1.BundleApproval, now time.Time) Ended
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
	rule := c.Rule(all.Items, now)
	var failures failures
	for i := range all.Items {
		one := &all.Items[i]
		ended, err := rule(ctx, one)
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

// Expired tells whether an approval has an expirationTime that is past.
func Expired(one *v1alpha1.BundleApproval, now time.Time) bool {
	return one.Spec.ExpirationTime != nil && !now.Before(one.Spec.ExpirationTime.Time)
}

// delete deletes an approval that has ended, unless what delivers manifests from Git would create it again, unused.
func (c *Collector) delete(ctx context.Context, one *v1alpha1.BundleApproval, ended, now time.Time) error {
	named := fmt.Sprintf("bundleapproval %s/%s", one.Namespace, one.Name)
	if !Expired(one, now) {
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
		"of", cmp.Or(one.Spec.Deployment, one.Spec.Rollout), "plan", one.Spec.Plan, "decision", one.Spec.Decision, "ended", ended)
	return nil
}

// ignoreChanged ignores that an object is gone or was changed: the next collection sees it as it is.
func ignoreChanged(err error, doing string) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// createdByCommand tells whether a command of satchel created an object, and only this controller has changed it, in its status.
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
