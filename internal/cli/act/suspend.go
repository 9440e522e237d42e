// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/change"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// SuspendCommand returns the command suspend.
func SuspendCommand(a *kit.App) *cobra.Command {
	var o change.Options
	cmd := &cobra.Command{
		Use:     "suspend [deployment|source|catalog] NAME...",
		GroupID: kit.GroupAct,
		Short:   "Stop installing, upgrading and repairing, until resumed",
		Long: `Sets spec.suspend. A suspended BundleDeployment keeps its objects; nothing is upgraded, and drift is not corrected, so
that objects can be changed by hand. Certificates of webhooks are not renewed either. A suspended BundleSource is not
resolved again; its artifact stays. A suspended BundleCatalog is not fetched again, and stays served. Suspended
objects can be deleted.

The BundleSource of an inline spec.source is suspended in its BundleDeployment (spec.source.suspend).

Exit codes:

    0    suspended (or was suspended already)
    2    failed: not found, no access; where one object of several cannot be changed, the others are
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Stop drift correction while you change objects by hand
satchel suspend podinfo

# Stop following a tag; drift of the deployment is still corrected
satchel suspend source podinfo

# All objects of a team; first only show what would be suspended
satchel suspend all -l team=payments --dry-run

# By a commit
satchel suspend podinfo --export`),
		ValidArgsFunction: a.CompleteTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := o.Targets(cmd, args)
			if err != nil {
				return err
			}
			_, err = change.Run(cmd.Context(), a, o, targets, func(ctx context.Context, c *kit.Cluster, one kit.Chosen) (change.Change, error) {
				return bySource(ctx, c, one, func(one kit.Chosen, _ *kit.Chosen) (change.Change, error) { return change.Suspend(one.Object), nil })
			})
			return err
		},
	}
	o.Flags(cmd)
	o.WritingFlags(cmd)
	return cmd
}

// ResumeCommand returns the command resume.
func ResumeCommand(a *kit.App) *cobra.Command {
	var o change.Options
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "resume [deployment|source|catalog] NAME...",
		GroupID: kit.GroupAct,
		Short:   "Resume suspended objects, and wait for the outcome",
		Long: `Removes spec.suspend, requests a reconcile, and waits for the outcome, as the command reconcile does. Changes that were
made by hand meanwhile are drift, and are corrected.

It refuses where a GitOps tool has set the field, because that would set it again: remove it there.

Exit codes:

    0    resumed, and Ready (with --wait=false: resumed)
    1    resumed, and not Ready
    2    failed: not found, no access, suspended by a GitOps tool, not handled within --timeout
    130  interrupted by Ctrl-C (it stays resumed)`,
		Example: a.Example(`
# Resume one deployment
satchel resume podinfo

# All deployments, sources and catalogs of the namespace
satchel resume all --all --wait=false`),
		ValidArgsFunction: a.CompleteTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := o.Targets(cmd, args)
			if err != nil {
				return err
			}
			token := a.Now().UTC().Format(time.RFC3339Nano)
			resumed, err := resume(cmd.Context(), a, o, targets, token)
			if !wait || len(resumed) == 0 {
				return err
			}
			return cmp.Or(err, awaitHandled(cmd.Context(), a, resumed, token, timeout))
		},
	}
	o.Flags(cmd)
	o.WritingFlags(cmd)
	cmd.Flags().BoolVar(&wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "How long to wait for the outcome.")
	return cmd
}

// resume resumes objects and requests a reconcile of them. It returns those to wait for; none where nothing was written.
func resume(ctx context.Context, a *kit.App, o change.Options, targets []kit.Target, token string) ([]kit.Target, error) {
	resumed, err := change.Run(ctx, a, o, targets, func(ctx context.Context, c *kit.Cluster, one kit.Chosen) (change.Change, error) {
		wanted, err := bySource(ctx, c, one, func(one kit.Chosen, holder *kit.Chosen) (change.Change, error) {
			if holder != nil {
				if err := change.RefuseSet(*holder, o, "source", "suspend"); err != nil {
					return change.Change{}, err
				}
			}
			return change.Resume(one, o)
		})
		if len(wanted.Spec) > 0 && !o.Export {
			wanted.Annotations = map[string]any{meta.ReconcileRequestAnnotation: token}
		}
		return wanted, err
	})
	if o.DryRun || o.Export {
		return nil, err
	}
	return resumed, err
}

// bySource decides about an object, and about an inline source in the deployment that has it: a change of the source itself would be
// undone. decide gets the object, and the deployment of an inline source.
func bySource(ctx context.Context, c *kit.Cluster, one kit.Chosen, decide func(one kit.Chosen, holder *kit.Chosen) (change.Change, error)) (change.Change, error) {
	owner := inlineOwner(one.Object)
	if owner == "" {
		wanted, err := decide(one, nil)
		if len(wanted.Spec) > 0 {
			wanted.Await = []kit.Target{one.Target}
		}
		return wanted, err
	}
	holder := kit.Chosen{Target: kit.Target{Kind: kit.Deployments, Name: owner}}
	d, err := c.Deployment(ctx, holder.Target)
	switch {
	case err != nil:
		return change.Change{}, err
	case d.Spec.Catalog != nil:
		return change.Change{}, fmt.Errorf("%s keeps a bundle of a catalog by its digest, which is not polled: suspend %s instead", one.Target, holder.Target)
	case d.Spec.Source == nil:
		return change.Change{}, fmt.Errorf("%s has no spec.source any more, and its source %s is removed soon: suspend the source that it has now", holder.Target, one.Target)
	}
	holder.Object = d
	wanted, err := decide(kit.Chosen{Target: one.Target, Object: &v1alpha1.BundleSource{Spec: *d.Spec.Source}}, &holder)
	if err != nil || len(wanted.Spec) == 0 {
		return wanted, err
	}
	wanted.Spec = map[string]any{"source": wanted.Spec}
	wanted.In = &holder
	wanted.Done += ", by spec.source.suspend of " + holder.String() + ", which it belongs to"
	wanted.Await = []kit.Target{holder.Target, one.Target} // the deployment hands the change on
	if d.Spec.Suspend {
		wanted.Done += " and which is suspended: it takes effect when that is resumed"
		wanted.Await = nil
	}
	return wanted, nil
}

// inlineOwner is the deployment that has the BundleSource as its inline source; empty for others.
func inlineOwner(o view.Object) string {
	owner := metav1.GetControllerOf(o)
	if _, isSource := o.(*v1alpha1.BundleSource); !isSource || owner == nil || owner.Kind != v1alpha1.BundleDeploymentKind {
		return ""
	}
	return owner.Name
}

// awaitHandled waits for the outcomes of a request, in turn and within one timeout, and reports them. It returns errNo if
// one of them failed.
func awaitHandled(ctx context.Context, a *kit.App, targets []kit.Target, token string, timeout time.Duration) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, timeout, kit.ErrTooLong)
	defer cancel()
	var outcome error
	for _, t := range targets {
		if err := awaitOne(waiting, a, c, t, token, timeout); err != nil {
			if outcome = worse(outcome, err); outcome != kit.ErrNo { //nolint:errorlint // errNo is compared, and never wrapped
				return outcome
			}
		}
	}
	return outcome
}
