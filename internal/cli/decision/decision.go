// SPDX-License-Identifier: Apache-2.0

// Package decision makes the BundleApprovals of the commands approve and rollout approve.
package decision

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// Options are the flags of a command that approves or denies a plan.
type Options struct {
	Deny   bool
	Plan   string
	Export bool
	DryRun bool
	Yes    bool

	reason  string
	expires time.Duration
}

// Flags adds the flags.
func (o *Options) Flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.Deny, "deny", false, "Deny the plan.")
	flags.StringVar(&o.Plan, "plan", "", "Digest of the plan that was reviewed; if another plan is pending, the command fails.")
	flags.StringVar(&o.reason, "reason", "", "Why, for others to read; at most 1024 characters.")
	flags.DurationVar(&o.expires, "expires", 0, "How long the decision holds, if the plan is not begun before; without it: for ever.")
	flags.BoolVar(&o.Export, "export", false, "Print the BundleApproval, to be committed to Git, instead of creating it.")
	flags.BoolVar(&o.DryRun, "dry-run", false, "Show the pending plan, and send the decision to the API server as a dry run only.")
	flags.BoolVarP(&o.Yes, "yes", "y", false, "Do not ask.")
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
}

// Check refuses a time that is over.
func (o *Options) Check(cmd *cobra.Command) error {
	if o.expires < 0 || cmd.Flag("expires").Changed && o.expires == 0 {
		return kit.UsageError(cmd, "--expires takes a time from now on, such as 1h")
	}
	return nil
}

// Decision is what the flags decide.
func (o *Options) Decision() v1alpha1.ApprovalDecision {
	if o.Deny {
		return v1alpha1.DecisionDeny
	}
	return v1alpha1.DecisionApprove
}

// Approval is the decision about a plan as an object. Its name begins as that of what is decided about, and contains the plan, so that
// a second decision about it is noticed.
func (o *Options) Approval(namespace, name string, about v1alpha1.BundleApprovalSpec, now time.Time) *v1alpha1.BundleApproval {
	digits := strings.TrimPrefix(about.Plan, "sha256:")
	middle := "-"
	if o.Deny {
		middle = "-deny-"
	}
	approval := &v1alpha1.BundleApproval{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleApprovalKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + middle + digits[:min(12, len(digits))]},
		Spec:       about,
	}
	approval.Spec.Decision = o.Decision()
	approval.Spec.Reason = o.reason
	if o.expires > 0 {
		approval.Spec.ExpirationTime = new(metav1.NewTime(now.Add(o.expires).UTC().Truncate(time.Second)))
	}
	return approval
}

// Print prints the decision as it is committed: without what a server fills in.
func Print(a *kit.App, approval *v1alpha1.BundleApproval) error {
	return printer.PrintValue(a.Streams.Out, printer.OutputYAML, map[string]any{
		"apiVersion": approval.APIVersion, "kind": approval.Kind,
		"metadata": map[string]any{"namespace": approval.Namespace, "name": approval.Name},
		"spec":     approval.Spec,
	})
}

// CanConfirm fails if the user has to be asked and cannot be.
func (o *Options) CanConfirm(a *kit.App, plan string) error {
	if o.needsNone() || a.CanAsk() {
		return nil
	}
	return fmt.Errorf("cannot ask for confirmation without a terminal: add --yes, or --plan %s if you reviewed that plan", plan)
}

// Confirm asks, unless the plan was reviewed before. A denial changes nothing, so it is not asked for.
func (o *Options) Confirm(ctx context.Context, a *kit.App, question string) error {
	if o.needsNone() {
		return nil
	}
	return a.Confirm(ctx, question, "yes", "Nothing was approved.")
}

func (o *Options) needsNone() bool { return o.Plan != "" || o.Deny || o.Yes || o.DryRun }

// Create creates the decision, unless one of the same name and content is valid already. If that one was used or has
// expired, the new one gets a generated name.
func (o *Options) Create(ctx context.Context, a *kit.App, c *kit.Cluster, approval *v1alpha1.BundleApproval) error {
	name := approval.Name
	options := []client.CreateOption{client.FieldOwner(kit.FieldManager)}
	if o.DryRun {
		options = append(options, client.DryRunAll)
	}
	err := c.Client.Create(ctx, approval, options...)
	if apierrors.IsAlreadyExists(err) {
		there := new(v1alpha1.BundleApproval)
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(approval), there); err != nil {
			return &kit.AccessError{Verb: "get", Resource: "bundleapprovals", Namespace: c.Namespace, Err: err}
		}
		if holds(there, approval, a.Now()) {
			fmt.Fprintf(a.Streams.Out, "BundleApproval %s: says so already\n", view.Inline(name))
			return nil
		}
		approval.Name = ""
		approval.GenerateName = name + "-"
		approval.ResourceVersion = ""
		err = c.Client.Create(ctx, approval, options...)
	}
	if err != nil {
		return &kit.AccessError{Verb: "create", Resource: "bundleapprovals", Namespace: c.Namespace, Err: err}
	}
	fmt.Fprintln(a.Streams.Out, o.done(approval))
	return nil
}

// done says what was created.
func (o *Options) done(approval *v1alpha1.BundleApproval) string {
	decides := "approves"
	kind := v1alpha1.BundleDeploymentKind
	name := approval.Spec.Deployment
	if o.Deny {
		decides = "denies"
	}
	if approval.Spec.Rollout != "" {
		kind = v1alpha1.BundleRolloutKind
		name = approval.Spec.Rollout
	}
	text := fmt.Sprintf("BundleApproval %s: %s plan %s of %s %s", view.Inline(approval.Name), decides, view.Inline(view.ShortRevision(approval.Spec.Plan)), kind, view.Inline(name))
	if o.DryRun {
		text += " (dry run)"
	}
	return text
}

// holds tells whether an existing decision equals the wanted one and is still valid.
func holds(there, wanted *v1alpha1.BundleApproval, now time.Time) bool {
	sameSubject := there.Spec.Deployment == wanted.Spec.Deployment && there.Spec.Rollout == wanted.Spec.Rollout && there.Spec.Plan == wanted.Spec.Plan
	hasExpired := there.Spec.ExpirationTime != nil && !now.Before(there.Spec.ExpirationTime.Time)
	return sameSubject && there.Spec.Decision == wanted.Spec.Decision && there.Status.ConsumedTime == nil && there.DeletionTimestamp.IsZero() && !hasExpired
}
