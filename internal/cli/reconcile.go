// SPDX-License-Identifier: Apache-2.0

package cli

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
)

// fieldManager is the name under which the command line writes.
const fieldManager = "satchel-cli"

// reconcileOptions are the flags of reconcile.
type reconcileOptions struct {
	withSource bool
	wait       bool
	timeout    time.Duration
}

func (a *app) reconcileCommand() *cobra.Command {
	var o reconcileOptions
	cmd := &cobra.Command{
		Use:     "reconcile [deployment|source] NAME",
		GroupID: groupAct,
		Short:   "Reconcile a BundleDeployment or BundleSource now",
		Long: `Requests that the controller reconciles an object now instead of at its next interval, and waits for the outcome. With
--with-source the source is resolved again first, so that a tag or branch that moved is installed at once.

Exit codes:

    0    handled, and Ready (with --wait=false: requested)
    1    handled, and not Ready
    2    failed: not found, no access, suspended, not handled within --timeout
    130  interrupted by Ctrl-C (the controller goes on)`,
		Example: a.example(`
# Check for drift, and repair it, now
satchel reconcile podinfo

# Install what the tag or branch points at now
satchel reconcile podinfo --with-source

# Only resolve the source again
satchel reconcile source podinfo`),
		ValidArgsFunction: a.completeTargets(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneTarget(cmd, args)
			if err != nil {
				return err
			}
			if o.withSource && t.kind.name == sources.name {
				return usageError(cmd, "--with-source is for deployments; a source is resolved anyway")
			}
			return a.reconcile(cmd.Context(), o, t)
		},
	}
	cmd.Flags().BoolVar(&o.withSource, "with-source", false, "Resolve the deployment's source first.")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait for the outcome.")
	return cmd
}

func (a *app) reconcile(ctx context.Context, o reconcileOptions, t target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	return a.reconcileAll(ctx, c, o, t)
}

// reconcileAll requests a reconcile of an object, and with --with-source of its source before.
func (a *app) reconcileAll(ctx context.Context, c *cluster, o reconcileOptions, t target) error {
	targets, err := a.toReconcile(ctx, c, o, t)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, errTooLong)
	defer cancel()
	for _, next := range targets {
		if err := a.reconcileOne(waiting, c, next, o); err != nil {
			return err
		}
	}
	return nil
}

// toReconcile returns the objects in the order in which they are to be handled.
func (a *app) toReconcile(ctx context.Context, c *cluster, o reconcileOptions, t target) ([]target, error) {
	found, err := c.get(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := a.refuseSuspended(t, found); err != nil {
		return nil, err
	}
	d, isDeployment := found.(*v1alpha1.BundleDeployment)
	if !o.withSource || !isDeployment {
		return []target{t}, nil
	}
	if d.SourceName() == "" {
		return nil, fmt.Errorf("the source of %s %s is %s, which Flux fetches: reconcile it with the flux command, and this one without --with-source", t.kind.name, t.name, d.SourceDisplayName())
	}
	source := target{kind: sources, name: d.SourceName()}
	found, err = c.get(ctx, source)
	if err != nil {
		return nil, err
	}
	return []target{source, t}, a.refuseSuspended(source, found)
}

// refuseSuspended refuses suspended objects, which would not be reconciled.
func (a *app) refuseSuspended(t target, o object) error {
	if !summarize(o).suspended {
		return nil
	}
	return fmt.Errorf("the %s %q is suspended, so nothing would happen: resume it, with %s resume %s", t.kind.name, t.name, a.name, t.word())
}

// reconcileOne requests a reconcile of one object and reports the outcome.
func (a *app) reconcileOne(ctx context.Context, c *cluster, t target, o reconcileOptions) error {
	token := a.now().UTC().Format(time.RFC3339Nano)
	if err := c.request(ctx, t, token); err != nil {
		return err
	}
	if !o.wait {
		fmt.Fprintf(a.streams.Out, "%s %s: reconcile requested.\n", t.kind.name, t.name)
		return nil
	}
	fmt.Fprintf(a.streams.ErrOut, "%s %s: reconcile requested, waiting for the outcome ...\n", t.kind.name, t.name)
	return a.awaitOne(ctx, c, t, token, o.timeout)
}

// awaitOne waits for the outcome of a request, and reports it.
func (a *app) awaitOne(ctx context.Context, c *cluster, t target, token string, timeout time.Duration) error {
	last, err := c.await(ctx, t, func(s summary) bool { return settled(s, token) })
	if errors.Is(err, errTooLong) {
		return a.reportTooLong(t, last, token, timeout)
	}
	if err != nil {
		return err
	}
	return a.reportOutcome(t, last)
}

// request requests a reconcile of an object; token identifies the request.
func (c *cluster) request(ctx context.Context, t target, token string) error {
	o := t.kind.empty()
	o.SetNamespace(c.namespace)
	o.SetName(t.name)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, token)
	err := c.client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner(fieldManager))
	if err != nil {
		return &accessError{verb: "patch", resource: t.kind.resource, namespace: c.namespace, err: err}
	}
	return nil
}

// settled tells whether the request was handled and its outcome is known: Ready, failed (also when it is retried later),
// stalled, suspended in the meantime, or waiting for approval, which may take days.
func settled(s summary, token string) bool {
	if s.suspended || s.deleting {
		return true
	}
	if s.handled != token || s.unseen {
		return false
	}
	return s.consent != "" || !s.inProgress() && s.ready != metav1.ConditionUnknown
}

func (a *app) reportOutcome(t target, s summary) error {
	st := styleFor(a.streams.Out)
	if s.isReady() {
		fmt.Fprintf(a.streams.Out, "%s %s: %s, revision %s\n", t.kind.name, t.name, st.paint(green, "Ready"), dash(shortRevision(printable(s.revision))))
		a.reportConsent(t, s)
		return nil
	}
	fmt.Fprintf(a.streams.Out, "%s %s: %s, %s\n%s\n", t.kind.name, t.name, st.paint(red, "not Ready"), dash(inline(s.reason)), printable(s.text()))
	if hint := hintFor(s.reason); hint != "" {
		fmt.Fprintf(a.streams.Out, "%s%s\n", st.paint(bold, "What to do: "), hint)
	}
	a.reportConsent(t, s)
	return errNo
}

// reportConsent says that a plan waits for approval.
func (a *app) reportConsent(t target, s summary) {
	if s.consent != "" {
		fmt.Fprintf(a.streams.Out, "Pending: %s; see it with %[2]s plan %[3]s, and decide with %[2]s approve %[3]s or %[2]s deny %[3]s\n", s.consent, a.name, shellWord(t.name))
	}
}

func (a *app) reportTooLong(t target, s summary, token string, timeout time.Duration) error {
	if s.handled != token {
		return fmt.Errorf("the %s %q was not handled within %s: check that its controller runs (kubectl get pods -n satchel-system); the request stays pending",
			t.kind.name, t.name, short(timeout))
	}
	fmt.Fprintf(a.streams.Out, "%s %s: still in progress after %s\n%s\n", t.kind.name, t.name, short(timeout), printable(s.text()))
	return errNo
}
