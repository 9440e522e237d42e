// SPDX-License-Identifier: Apache-2.0

package remove

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// DeleteOptions are the flags of delete.
type DeleteOptions struct {
	Output      printer.Output
	Yes         bool
	dryRun      bool
	orphan      bool
	definitions bool
	Wait        bool
	Timeout     time.Duration
}

const deleteHelp = `Lists which objects are deleted with a BundleDeployment, and which stay and why, asks, deletes it and waits until all of
them are gone. Without a terminal, --yes is needed.

CustomResourceDefinitions stay, with all their custom resources, unless spec.apply.crds.deletionPolicy is Delete, and
even then while custom resources of them exist. With --dangerous-delete-crds they are deleted, and with them THE CUSTOM
RESOURCES OF ALL USERS in all namespaces, which are counted before. These are deleted first, with your own permissions,
while the operator still runs and can clean up after them.

With --orphan only the BundleDeployment is deleted: its objects stay, annotated as orphaned, and the next BundleDeployment
that contains them adopts them.

What the command run created beside the BundleDeployment is deleted after it is gone: the BundleSource, the ServiceAccount
and its RBAC. Namespaces stay, because others may use them by now. If the command ended before, run it again.

Exit codes:

    0    gone (with --wait=false: requested; with --dry-run: listed)
    1    not gone within --timeout, or the answer to the question was no
    2    failed: not found, no access, not confirmed
    130  interrupted by Ctrl-C (what was begun goes on)`

// DeleteCommand returns the command delete.
func DeleteCommand(a *kit.App) *cobra.Command {
	var o DeleteOptions
	cmd := &cobra.Command{
		Use:     "delete NAME",
		GroupID: kit.GroupAct,
		Short:   "Delete a BundleDeployment, after showing what goes and what stays",
		Long:    deleteHelp,
		Example: a.Example(`
# Show what would be deleted, and ask
satchel delete podinfo

# Only show it
satchel delete podinfo --dry-run -o yaml

# In a script
satchel delete podinfo --yes --timeout 10m

# Release the objects and let them run
satchel delete podinfo --orphan

# Remove what "satchel run greeter" created
satchel delete greeter --yes`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneDeployment(cmd, args)
			switch {
			case err != nil:
				return err
			case o.orphan && o.definitions:
				return kit.UsageError(cmd, "--orphan keeps everything, --dangerous-delete-crds deletes more: use only one of the two")
			case o.Output != printer.OutputText && !o.dryRun:
				return kit.UsageError(cmd, "-o %s is for --dry-run", o.Output)
			}
			return deleteDeployment(cmd.Context(), a, o, t)
		},
	}
	a.OutputFlag(cmd, &o.Output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "Do not ask.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only list what would be deleted and what would stay.")
	cmd.Flags().BoolVar(&o.orphan, "orphan", false, "Leave the objects as they are.")
	cmd.Flags().BoolVar(&o.definitions, "dangerous-delete-crds", false, "Delete the CustomResourceDefinitions too, and all custom resources of them, of all users.")
	cmd.Flags().BoolVar(&o.Wait, "wait", true, "Wait until it is gone.")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 10*time.Minute, "How long to wait.")
	return cmd
}

func deleteDeployment(ctx context.Context, a *kit.App, o DeleteOptions, t kit.Target) error {
	x, err := a.Explore()
	if err != nil {
		return err
	}
	d, err := x.Deployment(ctx, t)
	var missing *kit.NotFoundError
	if errors.As(err, &missing) && !o.dryRun {
		return removeRest(ctx, a, x, o, t, err)
	}
	if err != nil {
		return err
	}
	f, err := RemovalPlanOf(ctx, x, d, RemovalPolicyOf(&d.Spec, o), o.definitions)
	if err != nil {
		return err
	}
	f.Needed, f.Required = dependents(ctx, x, d)
	if o.dryRun {
		return PrintRemovalPlan(a, o, f)
	}
	if d.DeletionTimestamp.IsZero() {
		if err := confirmDeletion(ctx, a, o, d, f); err != nil {
			return err
		}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.Timeout, kit.ErrTooLong)
	defer cancel()
	if err := BeginDeletion(waiting, a, x, o, d, f); err != nil || !o.Wait {
		return err
	}
	if err := AwaitGone(waiting, a, x, o, t); err != nil || !IsOfRun(d, d.Name) {
		return err
	}
	_, err = RunObjects{App: a, Explorer: x, Name: d.Name, InstallNamespace: effective.InstallNamespace(d)}.Remove(waiting, o.Timeout)
	return err
}

// removeRest deletes what an earlier deletion of a run left; where it left nothing, the deployment was not found.
func removeRest(ctx context.Context, a *kit.App, x *kit.Explorer, o DeleteOptions, t kit.Target, notFound error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, o.Timeout, kit.ErrTooLong)
	defer cancel()
	removed, err := RunObjects{App: a, Explorer: x, Name: t.Name}.Remove(waiting, o.Timeout)
	if err == nil && removed == 0 {
		return notFound
	}
	return err
}

// PrintRemovalPlan prints what goes and what stays.
func PrintRemovalPlan(a *kit.App, o DeleteOptions, f RemovalPlan) error {
	if o.Output != printer.OutputText {
		return printer.PrintValue(a.Streams.Out, o.Output, f)
	}
	fmt.Fprint(a.Streams.Out, f.Print(printer.StyleFor(a.Streams.Out)))
	return nil
}

// dependents are the deployments of the namespace that depend on one, and those that require its package and find it nowhere else, as
// far as the user may see them.
func dependents(ctx context.Context, x *kit.Explorer, d *v1alpha1.BundleDeployment) (needing, requiring []string) {
	listed, err := x.List(ctx, kit.Deployments, false, "")
	if err != nil {
		return nil, nil
	}
	var all []v1alpha1.BundleDeployment
	for _, raw := range listed {
		o, err := kit.Typed(kit.Deployments, raw)
		other, isDeployment := o.(*v1alpha1.BundleDeployment)
		if err != nil || !isDeployment {
			continue
		}
		all = append(all, *other)
		for _, dependency := range other.Spec.DependsOn {
			if dependency.Name == d.Name {
				needing = append(needing, other.Name)
			}
		}
	}
	return needing, spec.RequiringPackage(all, d)
}

// confirmDeletion shows what is deleted, and asks for confirmation.
func confirmDeletion(ctx context.Context, a *kit.App, o DeleteOptions, d *v1alpha1.BundleDeployment, f RemovalPlan) error {
	fmt.Fprint(a.Streams.Out, f.Print(printer.StyleFor(a.Streams.Out)))
	if IsOfRun(d, d.Name) {
		fmt.Fprintln(a.Streams.Out, "Then deleted: what the command run created beside it, that is its BundleSource, and its ServiceAccount and RBAC if run created them.")
	}
	if o.definitions {
		if err := f.refuseShared(); err != nil {
			return err
		}
	}
	if by := kit.Deliverer(d); by != "" {
		fmt.Fprintf(a.Streams.ErrOut, "%s it comes from %s, which will create it again: remove its manifest there.\n",
			printer.StyleFor(a.Streams.ErrOut).Paint(printer.Yellow, "Warning:"), view.Inline(by))
	}
	if o.Yes {
		return nil
	}
	if !a.CanAsk() {
		return fmt.Errorf("cannot ask for confirmation without a terminal: add --yes to delete %s %s/%s", kit.Deployments.Name, d.Namespace, d.Name)
	}
	question, answer := "Delete it? Type yes: ", "yes"
	if o.definitions {
		question, answer = "This deletes custom resources of others. Type the name of the deployment: ", d.Name
	}
	return a.Confirm(ctx, question, answer, "Nothing was deleted.")
}

// BeginDeletion sets the deletion policies of the flags, deletes the custom resources of others where that was requested, and
// then the deployment.
func BeginDeletion(ctx context.Context, a *kit.App, x *kit.Explorer, o DeleteOptions, d *v1alpha1.BundleDeployment, f RemovalPlan) error {
	t := kit.Target{Kind: kit.Deployments, Name: d.Name}
	if change := policyChange(o, d); change != nil {
		if err := x.Patch(ctx, t, change, false); err != nil {
			return err
		}
	}
	if o.definitions {
		if err := deletePopulations(ctx, a, x, o, f); err != nil {
			return err
		}
	}
	if d.DeletionTimestamp.IsZero() {
		err := x.Client.Delete(ctx, d, client.Preconditions{UID: &d.UID})
		if client.IgnoreNotFound(err) != nil {
			return &kit.AccessError{Verb: "delete", Resource: kit.Deployments.Resource, Namespace: x.Namespace, Err: err}
		}
		fmt.Fprintf(a.Streams.Out, "%s: deletion requested\n", t)
	}
	return nil
}

// policyChange is the patch of the spec that the flags need; nil when it has these values already.
func policyChange(o DeleteOptions, d *v1alpha1.BundleDeployment) map[string]any {
	switch {
	case o.orphan && d.Spec.DeletionPolicy != v1alpha1.DeletionOrphan:
		return map[string]any{"spec": map[string]any{"deletionPolicy": v1alpha1.DeletionOrphan}}
	case o.definitions && !effective.DeletesCRDs(&d.Spec):
		return map[string]any{"spec": map[string]any{"apply": map[string]any{"crds": map[string]any{"deletionPolicy": v1alpha1.DeletionDelete}}}}
	}
	return nil
}

// deletePopulations deletes the custom resources that were shown, and waits until no resource of others is left.
func deletePopulations(ctx context.Context, a *kit.App, x *kit.Explorer, o DeleteOptions, f RemovalPlan) error {
	for _, p := range f.Resources {
		if p.Count == 0 {
			continue
		}
		if err := deleteMembers(ctx, x, p); err != nil {
			return err
		}
		t := kit.Target{Kind: kit.Kind{Name: "CustomResourceDefinition"}, Name: p.Definition}
		err := a.WaitFor(ctx, t, o.Timeout, func() (kit.WaitState, error) { return stillThere(ctx, x, p) })
		if errors.Is(err, kit.ErrNo) {
			fmt.Fprintf(a.Streams.Out, "%s %s/%s is not deleted yet, so that its operator can finalize them; run this again then.\n", kit.Deployments.Name, f.Namespace, f.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stillThere tells how many of the deleted custom resources are left.
func stillThere(ctx context.Context, x *kit.Explorer, p Population) (kit.WaitState, error) {
	deleted := map[member]bool{}
	for _, m := range p.members {
		deleted[m] = true
	}
	left, example := 0, ""
	_, err := x.Each(ctx, kit.Listing{Resource: p.resource, Limit: len(p.members) * 2}, func(found kit.Sighting) {
		if deleted[member{found.GetNamespace(), found.GetName(), found.GetUID()}] {
			left++
			example = found.GetNamespace() + "/" + found.GetName() + WithFinalizers(found)
		}
	})
	if err != nil {
		return kit.WaitState{}, fmt.Errorf("listing %s: %w", p.resource.GroupResource(), err)
	}
	if left == 0 {
		return kit.WaitState{Done: true, Text: view.Plural(p.Count, "custom resource") + " gone"}, nil
	}
	return kit.WaitState{Text: fmt.Sprintf("%s left, such as %s", view.Plural(left, "custom resource"), view.Inline(example))}, nil
}

// WithFinalizers names the finalizers of an object, in parentheses; empty for none.
func WithFinalizers(o metav1.Object) string {
	if len(o.GetFinalizers()) == 0 {
		return ""
	}
	return " (finalizers " + view.WordList(o.GetFinalizers()) + ")"
}
