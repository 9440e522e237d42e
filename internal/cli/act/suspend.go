// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// pausing are the flags of suspend and resume.
type pausing struct {
	kit.Selection
	suspend bool
	dryRun  bool
	wait    bool
	timeout time.Duration
}

// SuspendCommand returns the command suspend.
func SuspendCommand(a *kit.App) *cobra.Command {
	o := pausing{suspend: true}
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
    2    failed: not found, no access; nothing after that object was changed
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Stop drift correction while you change objects by hand
satchel suspend podinfo

# Stop following a tag; drift of the deployment is still corrected
satchel suspend source podinfo

# All objects of a team; first only show what would be suspended
satchel suspend all -l team=payments --dry-run`),
		ValidArgsFunction: a.CompleteTargets(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return pauseFrom(a, cmd, o, args) },
	}
	o.Flags(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only ask the API server whether it could be done.")
	return cmd
}

// ResumeCommand returns the command resume.
func ResumeCommand(a *kit.App) *cobra.Command {
	var o pausing
	cmd := &cobra.Command{
		Use:     "resume [deployment|source|catalog] NAME...",
		GroupID: kit.GroupAct,
		Short:   "Resume suspended objects, and wait for the outcome",
		Long: `Removes spec.suspend, requests a reconcile, and waits for the outcome, as the command reconcile does. Changes that were
made by hand meanwhile are drift, and are corrected.

Exit codes:

    0    resumed, and Ready (with --wait=false: resumed)
    1    resumed, and not Ready
    2    failed: not found, no access, not handled within --timeout
    130  interrupted by Ctrl-C (it stays resumed)`,
		Example: a.Example(`
# Resume one deployment
satchel resume podinfo

# All deployments, sources and catalogs of the namespace
satchel resume all --all --wait=false`),
		ValidArgsFunction: a.CompleteTargets(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return pauseFrom(a, cmd, o, args) },
	}
	o.Flags(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only ask the API server whether it could be done.")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait for the outcome.")
	return cmd
}

func pauseFrom(a *kit.App, cmd *cobra.Command, o pausing, args []string) error {
	targets, err := o.Targets(cmd, args)
	if err != nil {
		return err
	}
	return pause(cmd.Context(), a, o, targets)
}

// pause suspends or resumes, all of them first, and then waits for those that were resumed.
func pause(ctx context.Context, a *kit.App, o pausing, targets []kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	all, err := c.Choose(ctx, o.Selection, targets)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.NothingChosen(c, o.Selection)
	}
	token := a.Now().UTC().Format(time.RFC3339Nano)
	var resumed []kit.Target
	for _, one := range all {
		asked, err := pauseOne(ctx, a, c, o, one, token)
		if err != nil {
			return err
		}
		resumed = append(resumed, asked...)
	}
	if o.suspend || !o.wait || o.dryRun {
		return nil
	}
	return awaitHandled(ctx, a, c, resumed, token, o.timeout)
}

// pauseOne changes one object, if needed, and returns the objects to wait for.
func pauseOne(ctx context.Context, a *kit.App, c *kit.Cluster, o pausing, one kit.Chosen, token string) ([]kit.Target, error) {
	if owner := inlineOwner(one.Object); owner != "" {
		return pauseInline(ctx, a, c, o, one, kit.Target{Kind: kit.Deployments, Name: owner}, token)
	}
	if view.Summarize(one.Object).Suspended == o.suspend {
		reportUnchanged(a, o, one)
		return nil, nil
	}
	if err := c.Patch(ctx, one.Target, suspension(o.suspend, token), o.dryRun); err != nil {
		return nil, err
	}
	reportPaused(a, o, one.Target, one.Object, "")
	return []kit.Target{one.Target}, nil
}

// pauseInline changes the deployment that has the inline source: a change of the source itself would be undone.
func pauseInline(ctx context.Context, a *kit.App, c *kit.Cluster, o pausing, one kit.Chosen, holder kit.Target, token string) ([]kit.Target, error) {
	found, err := c.Get(ctx, holder)
	if err != nil {
		return nil, err
	}
	if d, ok := found.(*v1alpha1.BundleDeployment); ok && d.Spec.Catalog != nil {
		return nil, fmt.Errorf("%s keeps a bundle of a catalog by its digest, which is not polled: suspend %s instead", one.Target, holder)
	}
	if d, ok := found.(*v1alpha1.BundleDeployment); ok && d.Spec.Source != nil && d.Spec.Source.Suspend == o.suspend {
		reportUnchanged(a, o, one)
		return nil, nil
	}
	change := suspension(o.suspend, token)
	change["spec"] = map[string]any{"source": change["spec"]}
	if err := c.Patch(ctx, holder, change, o.dryRun); err != nil {
		return nil, err
	}
	where := ", by spec.source.suspend of " + holder.String() + ", which it belongs to"
	if !view.Summarize(found).Suspended {
		reportPaused(a, o, one.Target, found, where)
		return []kit.Target{holder, one.Target}, nil // the deployment hands the change on
	}
	reportPaused(a, o, one.Target, found, where+" and which is suspended: it takes effect when that is resumed")
	return nil, nil
}

// reportUnchanged says that an object is suspended, or is not, as it should be.
func reportUnchanged(a *kit.App, o pausing, one kit.Chosen) {
	fmt.Fprintf(a.Streams.Out, "%s: %s\n", one, map[bool]string{true: "suspended already", false: "is not suspended"}[o.suspend])
}

// reportPaused says in one line what was done.
func reportPaused(a *kit.App, o pausing, t kit.Target, holder view.Object, where string) {
	done := map[bool]string{true: "suspended", false: "resumed"}[o.suspend]
	if o.dryRun {
		done += " (dry run)"
	}
	fmt.Fprintf(a.Streams.Out, "%s: %s%s\n", t, done, where)
	if o.dryRun {
		return
	}
	a.WarnDelivered(t, holder, map[bool]string{
		true: "commit suspend: true there, or suspend that as well", false: "see that suspend: true is not committed there",
	}[o.suspend])
}

// suspension is the patch of an object's own spec; a resume also requests a reconcile.
func suspension(suspend bool, token string) map[string]any {
	change := map[string]any{"spec": map[string]any{"suspend": suspendValue(suspend)}}
	if !suspend {
		change["metadata"] = map[string]any{"annotations": map[string]any{meta.ReconcileRequestAnnotation: token}}
	}
	return change
}

// suspendValue removes the field instead of setting it to false.
func suspendValue(suspend bool) any {
	if suspend {
		return true
	}
	return nil
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
func awaitHandled(ctx context.Context, a *kit.App, c *kit.Cluster, targets []kit.Target, token string, timeout time.Duration) error {
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
