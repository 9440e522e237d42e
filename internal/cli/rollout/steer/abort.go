// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/change"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// RetryCommand returns the command rollout retry.
func RetryCommand(a *kit.App) *cobra.Command {
	var o change.Options
	cmd := &cobra.Command{
		Use:   "retry NAME",
		Short: "Try a rejected revision again, and what the API server refused",
		Long: `Requests a reconcile, by the annotation reconcile.fluxcd.io/requestedAt. A revision that was rejected, because it was
rolled back, begins with the first wave again. Clusters on which the revision failed are not started again by that: their
BundleDeployments retry themselves, and reconcile --retry does it at once.

Exit codes:

    0    requested
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Try the revision again that was rolled back
satchel rollout retry cert-manager -n fleet`),
		ValidArgsFunction: a.CompleteOne(kit.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			return steerOne(cmd, a, o, args, func(_ kit.Chosen, object *v1alpha1.BundleRollout) (change.Change, error) {
				return retry(object, a.Now()), nil
			})
		},
	}
	o.WritingFlags(cmd)
	return cmd
}

func retry(o *v1alpha1.BundleRollout, now time.Time) change.Change {
	wanted := change.Change{Annotations: map[string]any{meta.ReconcileRequestAnnotation: now.UTC().Format(time.RFC3339Nano)}, Done: "a reconcile is requested"}
	if o.Status.RejectedRevision != "" {
		wanted.Then = "Revision " + view.Inline(o.Status.RejectedRevision) + " was rejected, and is tried again."
	}
	if o.Spec.Suspend {
		wanted.Then = "It is suspended: nothing is started until it is resumed."
	}
	return wanted
}

// AbortCommand returns the command rollout abort.
func AbortCommand(a *kit.App) *cobra.Command {
	var o change.Options
	cmd := &cobra.Command{
		Use:   "abort NAME",
		Short: "Stop a run, and bring all clusters back to the current revision",
		Long: `Sets spec.revision to the current revision, which is the last one that completed all waves, and removes spec.suspend: all
clusters that have another revision are brought back, in the reverse order of the waves, without approvals and windows.
The rollout stays at that revision until rollout resume --follow.

Exit codes:

    0    the clusters are being brought back (or there is nothing to bring back)
    2    failed: not found, no access, no revision to go back to
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Back to where it was
satchel rollout abort cert-manager -n fleet
satchel rollout status cert-manager -n fleet -w`),
		ValidArgsFunction: a.CompleteOne(kit.Rollouts),
		RunE:              func(cmd *cobra.Command, args []string) error { return steerOne(cmd, a, o, args, abort) },
	}
	o.WritingFlags(cmd)
	return cmd
}

func abort(_ kit.Chosen, o *v1alpha1.BundleRollout) (change.Change, error) {
	current, update := o.Status.CurrentRevision, o.Status.UpdateRevision
	switch {
	case current == nil:
		return change.Change{}, fmt.Errorf("%s %s/%s has no revision to go back to: none has completed all waves yet; rollout suspend stops it", v1alpha1.BundleRolloutKind, o.Namespace, o.Name)
	case update == nil || current.Digest == update.Digest:
		return change.Change{Done: "no run to stop: all waves have revision " + view.Inline(current.Name)}, nil
	case o.Spec.Revision == current.Name && !o.Spec.Suspend:
		return change.Change{Done: "goes back to revision " + view.Inline(current.Name) + " already"}, nil
	}
	spec := map[string]any{"revision": current.Name}
	if o.Spec.Suspend {
		spec["suspend"] = nil
	}
	return change.Change{
		Spec: spec, Done: "goes back to revision " + view.Inline(current.Name), Commit: fmt.Sprintf("commit revision: %q there", current.Name),
		Then:    "It stays there until a user has it follow its source again:",
		Command: "rollout resume " + view.ShellWord(o.Name) + " -n " + view.ShellWord(o.Namespace) + " --follow",
	}, nil
}
