// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// pausing are the flags of suspend and resume.
type pausing struct {
	selection
	suspend bool
	dryRun  bool
	wait    bool
	timeout time.Duration
}

func (a *app) suspendCommand() *cobra.Command {
	o := pausing{suspend: true}
	cmd := &cobra.Command{
		Use:     "suspend [deployment|source] NAME...",
		GroupID: groupAct,
		Short:   "Stop installing, upgrading and repairing, until resumed",
		Long: `Sets spec.suspend. A suspended BundleDeployment keeps its objects; nothing is upgraded, and drift is not corrected, so
that objects can be changed by hand. Certificates of webhooks are not renewed either. A suspended BundleSource is not
resolved again; its artifact stays. Suspended objects can be deleted.

The BundleSource of an inline spec.source is suspended in its BundleDeployment (spec.source.suspend).

Exit codes:

    0    suspended (or was suspended already)
    2    failed: not found, no access; nothing after that object was changed
    130  interrupted by Ctrl-C`,
		Example: a.example(`
# Stop drift correction while you change objects by hand
satchel suspend podinfo

# Stop following a tag; drift of the deployment is still corrected
satchel suspend source podinfo

# All objects of a team; first only show what would be suspended
satchel suspend all -l team=payments --dry-run`),
		ValidArgsFunction: a.completeTargets(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.pauseFrom(cmd, o, args) },
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only ask the API server whether it could be done.")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var o pausing
	cmd := &cobra.Command{
		Use:     "resume [deployment|source] NAME...",
		GroupID: groupAct,
		Short:   "Resume suspended objects, and wait for the outcome",
		Long: `Removes spec.suspend, requests a reconcile, and waits for the outcome, as the command reconcile does. Changes that were
made by hand meanwhile are drift, and are corrected.

Exit codes:

    0    resumed, and Ready (with --wait=false: resumed)
    1    resumed, and not Ready
    2    failed: not found, no access, not handled within --timeout
    130  interrupted by Ctrl-C (it stays resumed)`,
		Example: a.example(`
# Resume one deployment
satchel resume podinfo

# All deployments and sources of the namespace
satchel resume all --all --wait=false`),
		ValidArgsFunction: a.completeTargets(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.pauseFrom(cmd, o, args) },
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only ask the API server whether it could be done.")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait for the outcome.")
	return cmd
}

func (a *app) pauseFrom(cmd *cobra.Command, o pausing, args []string) error {
	targets, err := o.targets(cmd, args)
	if err != nil {
		return err
	}
	return a.pause(cmd.Context(), o, targets)
}

// pause suspends or resumes, all of them first, and then waits for those that were resumed.
func (a *app) pause(ctx context.Context, o pausing, targets []target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	all, err := c.choose(ctx, o.selection, targets)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.nothingChosen(c, o.selection)
	}
	token := a.now().UTC().Format(time.RFC3339Nano)
	var resumed []target
	for _, one := range all {
		asked, err := a.pauseOne(ctx, c, o, one, token)
		if err != nil {
			return err
		}
		resumed = append(resumed, asked...)
	}
	if o.suspend || !o.wait || o.dryRun {
		return nil
	}
	return a.awaitHandled(ctx, c, resumed, token, o.timeout)
}

// pauseOne changes one object, if needed, and returns the objects to wait for.
func (a *app) pauseOne(ctx context.Context, c *cluster, o pausing, one chosen, token string) ([]target, error) {
	if owner := inlineOwner(one.object); owner != "" {
		return a.pauseInline(ctx, c, o, one, target{kind: deployments, name: owner}, token)
	}
	if summarize(one.object).suspended == o.suspend {
		a.reportUnchanged(o, one)
		return nil, nil
	}
	if err := c.patch(ctx, one.target, suspension(o.suspend, token), o.dryRun); err != nil {
		return nil, err
	}
	a.reportPaused(o, one.target, one.object, "")
	return []target{one.target}, nil
}

// pauseInline changes the deployment that has the inline source: a change of the source itself would be undone.
func (a *app) pauseInline(ctx context.Context, c *cluster, o pausing, one chosen, holder target, token string) ([]target, error) {
	found, err := c.get(ctx, holder)
	if err != nil {
		return nil, err
	}
	if d, ok := found.(*v1alpha1.BundleDeployment); ok && d.Spec.Source != nil && d.Spec.Source.Suspend == o.suspend {
		a.reportUnchanged(o, one)
		return nil, nil
	}
	change := suspension(o.suspend, token)
	change["spec"] = map[string]any{"source": change["spec"]}
	if err := c.patch(ctx, holder, change, o.dryRun); err != nil {
		return nil, err
	}
	where := ", by spec.source.suspend of " + holder.String() + ", which it belongs to"
	if !summarize(found).suspended {
		a.reportPaused(o, one.target, found, where)
		return []target{holder, one.target}, nil // the deployment hands the change on
	}
	a.reportPaused(o, one.target, found, where+" and which is suspended: it takes effect when that is resumed")
	return nil, nil
}

// reportUnchanged says that an object is suspended, or is not, as it should be.
func (a *app) reportUnchanged(o pausing, one chosen) {
	fmt.Fprintf(a.streams.Out, "%s: %s\n", one, map[bool]string{true: "suspended already", false: "is not suspended"}[o.suspend])
}

// reportPaused says in one line what was done.
func (a *app) reportPaused(o pausing, t target, holder object, where string) {
	done := map[bool]string{true: "suspended", false: "resumed"}[o.suspend]
	if o.dryRun {
		done += " (dry run)"
	}
	fmt.Fprintf(a.streams.Out, "%s: %s%s\n", t, done, where)
	if o.dryRun {
		return
	}
	a.warnDelivered(t, holder, map[bool]string{
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
func inlineOwner(o object) string {
	owner := metav1.GetControllerOf(o)
	if _, isSource := o.(*v1alpha1.BundleSource); !isSource || owner == nil || owner.Kind != v1alpha1.BundleDeploymentKind {
		return ""
	}
	return owner.Name
}

// patch changes fields of an object.
func (c *cluster) patch(ctx context.Context, t target, change map[string]any, dryRun bool) error {
	encoded, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("changing %s: %w", t, err)
	}
	o := t.kind.empty()
	o.SetNamespace(c.namespace)
	o.SetName(t.name)
	options := []client.PatchOption{client.FieldOwner(fieldManager)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, encoded), options...); err != nil {
		return &accessError{verb: "patch", resource: t.kind.resource, namespace: c.namespace, err: err}
	}
	return nil
}

// awaitHandled waits for the outcomes of a request, in turn and within one timeout, and reports them. It returns errNo if
// one of them failed.
func (a *app) awaitHandled(ctx context.Context, c *cluster, targets []target, token string, timeout time.Duration) error {
	waiting, cancel := context.WithTimeoutCause(ctx, timeout, errTooLong)
	defer cancel()
	var outcome error
	for _, t := range targets {
		if err := a.awaitOne(waiting, c, t, token, timeout); err != nil {
			if outcome = worse(outcome, err); outcome != errNo { //nolint:errorlint // errNo is compared, and never wrapped
				return outcome
			}
		}
	}
	return outcome
}

// worse keeps the first failure, and prefers other errors to errNo.
func worse(a, b error) error {
	if a == nil || a == errNo { //nolint:errorlint // errNo is compared, and never wrapped
		return b
	}
	return a
}
