// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// ReconcileOptions are the flags of reconcile.
type ReconcileOptions struct {
	withSource bool
	retry      bool
	Wait       bool
	Timeout    time.Duration
}

// ReconcileCommand returns the command reconcile.
func ReconcileCommand(a *kit.App) *cobra.Command {
	var o ReconcileOptions
	cmd := &cobra.Command{
		Use:     "reconcile [deployment|source|catalog] NAME",
		GroupID: kit.GroupAct,
		Short:   "Reconcile a BundleDeployment, BundleSource or BundleCatalog now",
		Long: `Requests that the controller reconciles an object now instead of at its next interval, and waits for the outcome. With
--with-source the source is resolved again first, so that a tag or branch that moved is installed at once.

With --retry a BundleDeployment that failed is reconciled with all of its retries: a revision that remediation rejected is
installed again, and a stalled deployment is reconciled as if it were new. If it is blocked by its source, the source is
fetched again first. A deployment that is Ready is not changed.

Exit codes:

    0    handled, and Ready (with --wait=false: requested)
    1    handled, and not Ready
    2    failed: not found, no access, suspended, not handled within --timeout
    130  interrupted by Ctrl-C (the controller goes on)`,
		Example: a.Example(`
# Check for drift, and repair it, now
satchel reconcile podinfo

# Install what the tag or branch points at now
satchel reconcile podinfo --with-source

# Only resolve the source again, or fetch a catalog again
satchel reconcile source podinfo
satchel reconcile catalog community

# Try again what failed, for example after an outage of the registry, or a revision that was rolled back
satchel reconcile podinfo --retry`),
		ValidArgsFunction: a.CompleteTargets(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneTarget(cmd, args)
			if err != nil {
				return err
			}
			switch {
			case o.withSource && t.Kind.Name != kit.Deployments.Name:
				return kit.UsageError(cmd, "--with-source is for deployments; a %s is resolved anyway", t.Kind.Word)
			case o.retry && t.Kind.Name != kit.Deployments.Name:
				return kit.UsageError(cmd, "--retry is for deployments; a %s is always tried again", t.Kind.Word)
			}
			return reconcile(cmd.Context(), a, o, t)
		},
	}
	cmd.Flags().BoolVar(&o.withSource, "with-source", false, "Resolve the deployment's source first.")
	cmd.Flags().BoolVar(&o.retry, "retry", false, "Only if it failed, was rejected or is stalled: try again as if it were new.")
	cmd.Flags().BoolVar(&o.Wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to wait for the outcome.")
	return cmd
}

func reconcile(ctx context.Context, a *kit.App, o ReconcileOptions, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if o.retry {
		return retry(ctx, a, c, o, t)
	}
	return reconcileAll(ctx, a, c, o, t)
}

// reconcileAll requests a reconcile of an object, and with --with-source of its source before.
func reconcileAll(ctx context.Context, a *kit.App, c *kit.Cluster, o ReconcileOptions, t kit.Target) error {
	targets, err := toReconcile(ctx, a, c, o, t)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.Timeout, kit.ErrTooLong)
	defer cancel()
	for _, next := range targets {
		if err := ReconcileOne(waiting, a, c, next, o); err != nil {
			return err
		}
	}
	return nil
}

// toReconcile returns the objects in the order in which they are to be handled.
func toReconcile(ctx context.Context, a *kit.App, c *kit.Cluster, o ReconcileOptions, t kit.Target) ([]kit.Target, error) {
	found, err := c.Get(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := refuseSuspended(a, t, found); err != nil {
		return nil, err
	}
	d, isDeployment := found.(*v1alpha1.BundleDeployment)
	if !o.withSource || !isDeployment {
		return []kit.Target{t}, nil
	}
	if effective.SourceName(d) == "" {
		return nil, fmt.Errorf("the source of %s %s is %s, which Flux fetches: reconcile it with the flux command, and this one without --with-source", t.Kind.Name, t.Name, effective.SourceDisplayName(d))
	}
	source := kit.Target{Kind: kit.Sources, Name: effective.SourceName(d)}
	found, err = c.Get(ctx, source)
	if err != nil {
		return nil, err
	}
	return []kit.Target{source, t}, refuseSuspended(a, source, found)
}

// refuseSuspended refuses suspended objects, which would not be reconciled.
func refuseSuspended(a *kit.App, t kit.Target, o view.Object) error {
	if !view.Summarize(o).Suspended {
		return nil
	}
	return fmt.Errorf("the %s %q is suspended, so nothing would happen: resume it, with %s resume %s", t.Kind.Name, t.Name, a.Name, t.Word())
}

// ReconcileOne requests a reconcile of one object and reports the outcome.
func ReconcileOne(ctx context.Context, a *kit.App, c *kit.Cluster, t kit.Target, o ReconcileOptions) error {
	token := a.Now().UTC().Format(time.RFC3339Nano)
	if err := request(ctx, c, t, token); err != nil {
		return err
	}
	if !o.Wait {
		fmt.Fprintf(a.Streams.Out, "%s %s: reconcile requested.\n", t.Kind.Name, t.Name)
		return nil
	}
	fmt.Fprintf(a.Streams.ErrOut, "%s %s: reconcile requested, waiting for the outcome ...\n", t.Kind.Name, t.Name)
	return awaitOne(ctx, a, c, t, token, o.Timeout)
}

// awaitOne waits for the outcome of a request, and reports it.
func awaitOne(ctx context.Context, a *kit.App, c *kit.Cluster, t kit.Target, token string, timeout time.Duration) error {
	last, err := c.Await(ctx, t, func(s view.Summary) bool { return settled(s, token) })
	if errors.Is(err, kit.ErrTooLong) {
		return reportTooLong(a, t, last, token, timeout)
	}
	if err != nil {
		return err
	}
	return reportOutcome(a, t, last)
}

// request requests a reconcile of an object; token identifies the request.
func request(ctx context.Context, c *kit.Cluster, t kit.Target, token string) error {
	o := t.Kind.Empty()
	o.SetNamespace(c.Namespace)
	o.SetName(t.Name)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, token)
	err := c.Client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner(kit.FieldManager))
	if err != nil {
		return &kit.AccessError{Verb: "patch", Resource: t.Kind.Resource, Namespace: c.Namespace, Err: err}
	}
	return nil
}

// settled tells whether the request was handled and its outcome is known: Ready, failed (also when it is retried later),
// stalled, suspended in the meantime, or waiting for approval, which may take days.
func settled(s view.Summary, token string) bool {
	if s.Suspended || s.Deleting {
		return true
	}
	if s.Handled != token || s.Unseen {
		return false
	}
	return s.Pending != "" || !s.InProgress() && s.Ready != metav1.ConditionUnknown
}

func reportOutcome(a *kit.App, t kit.Target, s view.Summary) error {
	st := printer.StyleFor(a.Streams.Out)
	if s.IsReady() {
		fmt.Fprintf(a.Streams.Out, "%s %s: %s, %s\n", t.Kind.Name, t.Name, st.Paint(printer.Green, "Ready"), s.RevisionName())
		reportPendingDecision(a, t, s)
		return nil
	}
	fmt.Fprintf(a.Streams.Out, "%s %s: %s, %s\n%s\n", t.Kind.Name, t.Name, st.Paint(printer.Red, "not Ready"), kit.Dash(view.Inline(s.Reason)), view.Printable(s.Text()))
	if hint := view.HintFor(s.Reason); hint != "" {
		fmt.Fprintf(a.Streams.Out, "%s%s\n", st.Paint(printer.Bold, "What to do: "), hint)
	}
	reportPendingDecision(a, t, s)
	return kit.ErrNo
}

// reportPendingDecision says that a plan waits for approval.
func reportPendingDecision(a *kit.App, t kit.Target, s view.Summary) {
	if s.Pending != "" {
		fmt.Fprintf(a.Streams.Out, "Pending: %s; see it with %[2]s plan %[3]s, and decide with %[2]s approve %[3]s\n", s.Pending, a.Name, view.ShellWord(t.Name))
	}
}

func reportTooLong(a *kit.App, t kit.Target, s view.Summary, token string, timeout time.Duration) error {
	if s.Handled != token {
		return fmt.Errorf("the %s %q was not handled within %s: check that its controller runs (kubectl get pods -n satchel-system); the request stays pending",
			t.Kind.Name, t.Name, view.Short(timeout))
	}
	fmt.Fprintf(a.Streams.Out, "%s %s: still in progress after %s\n%s\n", t.Kind.Name, t.Name, view.Short(timeout), view.Printable(s.Text()))
	return kit.ErrNo
}
