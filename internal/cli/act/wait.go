// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// worse keeps the first failure, and prefers other errors to errNo.
func worse(a, b error) error {
	if a == nil || a == kit.ErrNo { //nolint:errorlint // errNo is compared, and never wrapped
		return b
	}
	return a
}

// waitOptions are the flags of wait.
type waitOptions struct {
	kit.Selection
	until   string
	timeout time.Duration
}

// WaitCommand returns the command wait.
func WaitCommand(a *kit.App) *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:     "wait [deployment|source|catalog] NAME...",
		GroupID: kit.GroupAct,
		Short:   "Wait until objects are Ready, have a revision, or are gone",
		Long: `Waits for a condition, and shows the progress on standard error. It changes nothing.

    --for ready           Ready with the current spec and, for a BundleDeployment, the current revision of its source.
                          It ends early, with 1, for an object that needs user action: stalled or suspended.
    --for revision=REV    Ready with this revision: its full name, the part before the @, or a digest of 12 or more digits
    --for deleted         gone, with all installed objects

Exit codes:

    0    condition met
    1    timed out, stalled or suspended
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# In a pipeline, after applying the manifests
satchel wait podinfo --timeout 10m

# Until a release is installed
satchel wait podinfo --for revision=v1.4.0

# All sources of a team
satchel wait sources -l team=payments

# After kubectl delete --wait=false
satchel wait podinfo --for deleted`),
		ValidArgsFunction: a.CompleteTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := o.Targets(cmd, args)
			if err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return wait(cmd.Context(), a, o, targets)
		},
	}
	o.Flags(cmd)
	cmd.Flags().StringVar(&o.until, "for", kit.ForReady, "What to wait for: ready, deleted or revision=REV.")
	a.CompleteFlag(cmd, "for", kit.Fixed(kit.ForReady, kit.ForDeleted, kit.ForRevision))
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait, for all of them together.")
	return cmd
}

// check refuses unknown conditions.
func (o waitOptions) check(cmd *cobra.Command) error {
	revision, isRevision := strings.CutPrefix(o.until, kit.ForRevision)
	if isRevision && revision != "" || o.until == kit.ForReady || o.until == kit.ForDeleted {
		return nil
	}
	return kit.UsageError(cmd, "--for takes ready, deleted or revision=REV, not %q", o.until)
}

func wait(ctx context.Context, a *kit.App, o waitOptions, targets []kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	all, err := chooseToWait(ctx, a, c, o, targets)
	if err != nil {
		return err
	}
	if len(all) == 0 && o.until != kit.ForDeleted {
		a.NothingChosen(c, o.Selection)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, kit.ErrTooLong)
	defer cancel()
	var outcome error
	for _, one := range all {
		err := waitOne(waiting, a, c, o, one.Target)
		if outcome = worse(outcome, err); outcome != nil && !errors.Is(outcome, kit.ErrNo) {
			return outcome
		}
	}
	return outcome
}

// chooseToWait is choose; with --for deleted, objects that do not exist are no error.
func chooseToWait(ctx context.Context, a *kit.App, c *kit.Cluster, o waitOptions, targets []kit.Target) ([]kit.Chosen, error) {
	if o.until != kit.ForDeleted {
		return c.Choose(ctx, o.Selection, targets)
	}
	var all []kit.Chosen
	for _, t := range targets {
		found, err := c.Choose(ctx, o.Selection, []kit.Target{t})
		var missing *kit.NotFoundError
		if errors.As(err, &missing) {
			fmt.Fprintf(a.Streams.Out, "%s: gone\n", t)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// waitOne waits for one object.
func waitOne(ctx context.Context, a *kit.App, c *kit.Cluster, o waitOptions, t kit.Target) error {
	return a.WaitFor(ctx, t, o.timeout, func() (kit.WaitState, error) { return look(ctx, c, o, t) })
}

// look reads the object, and its source where that matters.
func look(ctx context.Context, c *kit.Cluster, o waitOptions, t kit.Target) (kit.WaitState, error) {
	found := t.Kind.Empty()
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: t.Name}, found)
	switch {
	case kit.IsObjectNotFound(err) && o.until == kit.ForDeleted:
		return kit.WaitState{Done: true, Text: "gone"}, nil
	case kit.IsObjectNotFound(err):
		return kit.WaitState{}, c.NotFound(ctx, t)
	case err != nil:
		return kit.WaitState{}, &kit.AccessError{Verb: "get", Resource: t.Kind.Resource, Namespace: c.Namespace, Err: err}
	}
	if o.until == kit.ForDeleted {
		return deletionState(found), nil
	}
	source, err := c.SourceOf(ctx, found)
	if err != nil {
		return kit.WaitState{}, err
	}
	return kit.ReadinessOf(found, source, strings.TrimPrefix(o.until, kit.ForRevision), o.until != kit.ForReady), nil
}

func deletionState(o view.Object) kit.WaitState {
	s := view.Summarize(o)
	if !s.Deleting {
		return kit.WaitState{Text: "its deletion has not been requested"}
	}
	return kit.WaitState{Text: "being deleted" + kit.WithText(s)}
}
