// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// deleteOptions are the flags of delete.
type deleteOptions struct {
	output      output
	yes         bool
	dryRun      bool
	orphan      bool
	definitions bool
	wait        bool
	timeout     time.Duration
}

func (a *app) deleteCommand() *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use:     "delete NAME",
		GroupID: groupAct,
		Short:   "Delete a BundleDeployment, after showing what goes and what stays",
		Long: `Lists which objects are deleted with a BundleDeployment, and which stay and why, asks, deletes it and waits until all of
them are gone. Without a terminal, --yes is needed.

CustomResourceDefinitions stay, with all their custom resources, unless spec.crds.deletionPolicy is Delete, and even then
while custom resources of them exist. With --dangerous-delete-crds they are deleted, and with them THE CUSTOM RESOURCES OF
ALL USERS in all namespaces, which are counted before. These are deleted first, with your own permissions, while the
operator still runs and can clean up after them.

With --orphan only the BundleDeployment is deleted: its objects stay, annotated as orphaned, and the next BundleDeployment
that contains them adopts them.

Exit codes:

    0    gone (with --wait=false: requested; with --dry-run: listed)
    1    not gone within --timeout, or the answer to the question was no
    2    failed: not found, no access, not confirmed
    130  interrupted by Ctrl-C (what was begun goes on)`,
		Example: a.example(`
# Show what would be deleted, and ask
satchel delete podinfo

# Only show it
satchel delete podinfo --dry-run -o yaml

# In a script
satchel delete podinfo --yes --timeout 10m

# Release the objects and let them run
satchel delete podinfo --orphan`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneDeployment(cmd, args)
			switch {
			case err != nil:
				return err
			case o.orphan && o.definitions:
				return usageError(cmd, "--orphan keeps everything, --dangerous-delete-crds deletes more: use only one of the two")
			case o.output != outputText && !o.dryRun:
				return usageError(cmd, "-o %s is for --dry-run", o.output)
			}
			return a.delete(cmd.Context(), o, t)
		},
	}
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only list what would be deleted and what would stay.")
	cmd.Flags().BoolVar(&o.orphan, "orphan", false, "Leave the objects as they are.")
	cmd.Flags().BoolVar(&o.definitions, "dangerous-delete-crds", false, "Delete the CustomResourceDefinitions too, and all custom resources of them, of all users.")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait until it is gone.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "How long to wait.")
	return cmd
}

func (a *app) delete(ctx context.Context, o deleteOptions, t target) error {
	x, err := a.explore()
	if err != nil {
		return err
	}
	d, err := x.deployment(ctx, t)
	if err != nil {
		return err
	}
	f, err := x.removalPlanOf(ctx, d, removalPolicyOf(&d.Spec, o), o.definitions)
	if err != nil {
		return err
	}
	f.Needed = x.dependents(ctx, d)
	if o.dryRun {
		return a.printRemovalPlan(o, f)
	}
	if d.DeletionTimestamp.IsZero() {
		if err := a.confirmDeletion(ctx, o, d, f); err != nil {
			return err
		}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, errTooLong)
	defer cancel()
	if err := a.beginDeletion(waiting, x, o, d, f); err != nil || !o.wait {
		return err
	}
	return a.awaitGone(waiting, x, o, t)
}

func (a *app) printRemovalPlan(o deleteOptions, f removalPlan) error {
	if o.output != outputText {
		return printValue(a.streams.Out, o.output, f)
	}
	fmt.Fprint(a.streams.Out, f.print(styleFor(a.streams.Out)))
	return nil
}

// dependents are the deployments of the namespace that depend on one, as far as the user may see them.
func (x *explorer) dependents(ctx context.Context, d *v1alpha1.BundleDeployment) []string {
	listed, err := x.list(ctx, deployments, false, "")
	if err != nil {
		return nil
	}
	var found []string
	for _, raw := range listed {
		o, err := typed(deployments, raw)
		other, isDeployment := o.(*v1alpha1.BundleDeployment)
		if err != nil || !isDeployment {
			continue
		}
		for _, dependency := range other.Spec.DependsOn {
			if dependency.Name == d.Name {
				found = append(found, other.Name)
			}
		}
	}
	return found
}

// confirmDeletion shows what is deleted, and asks for confirmation.
func (a *app) confirmDeletion(ctx context.Context, o deleteOptions, d *v1alpha1.BundleDeployment, f removalPlan) error {
	fmt.Fprint(a.streams.Out, f.print(styleFor(a.streams.Out)))
	if o.definitions {
		if err := f.refuseShared(); err != nil {
			return err
		}
	}
	if by := deliverer(d); by != "" {
		fmt.Fprintf(a.streams.ErrOut, "%s it comes from %s, which will create it again: remove its manifest there.\n",
			styleFor(a.streams.ErrOut).paint(yellow, "Warning:"), inline(by))
	}
	if o.yes {
		return nil
	}
	if !a.canAsk() {
		return fmt.Errorf("cannot ask for confirmation without a terminal: add --yes to delete %s %s/%s", deployments.name, d.Namespace, d.Name)
	}
	question, answer := "Delete it? Type yes: ", "yes"
	if o.definitions {
		question, answer = "This deletes custom resources of others. Type the name of the deployment: ", d.Name
	}
	return a.confirm(ctx, question, answer)
}

// beginDeletion sets the deletion policies of the flags, deletes the custom resources of others where that was requested, and
// then the deployment.
func (a *app) beginDeletion(ctx context.Context, x *explorer, o deleteOptions, d *v1alpha1.BundleDeployment, f removalPlan) error {
	t := target{kind: deployments, name: d.Name}
	if change := policyChange(o, d); change != nil {
		if err := x.patch(ctx, t, change, false); err != nil {
			return err
		}
	}
	if o.definitions {
		if err := a.deletePopulations(ctx, x, o, f); err != nil {
			return err
		}
	}
	if d.DeletionTimestamp.IsZero() {
		err := x.client.Delete(ctx, d, client.Preconditions{UID: &d.UID})
		if client.IgnoreNotFound(err) != nil {
			return &accessError{verb: "delete", resource: deployments.resource, namespace: x.namespace, err: err}
		}
		fmt.Fprintf(a.streams.Out, "%s: deletion requested\n", t)
	}
	return nil
}

// policyChange is the patch of the spec that the flags need; nil when it has these values already.
func policyChange(o deleteOptions, d *v1alpha1.BundleDeployment) map[string]any {
	switch {
	case o.orphan && d.Spec.DeletionPolicy != v1alpha1.DeletionOrphan:
		return map[string]any{"spec": map[string]any{"deletionPolicy": v1alpha1.DeletionOrphan}}
	case o.definitions && !d.Spec.DeletesCRDs():
		return map[string]any{"spec": map[string]any{"crds": map[string]any{"deletionPolicy": v1alpha1.DeletionDelete}}}
	}
	return nil
}

// deletePopulations deletes the custom resources that were shown, and waits until no resource of others is left.
func (a *app) deletePopulations(ctx context.Context, x *explorer, o deleteOptions, f removalPlan) error {
	for _, p := range f.Resources {
		if p.Count == 0 {
			continue
		}
		if err := x.deleteMembers(ctx, p); err != nil {
			return err
		}
		t := target{kind: kind{name: "CustomResourceDefinition"}, name: p.Definition}
		err := a.waitFor(ctx, t, o.timeout, func() (waitState, error) { return x.stillThere(ctx, p) })
		if errors.Is(err, errNo) {
			fmt.Fprintf(a.streams.Out, "%s %s/%s is not deleted yet, so that its operator can finalize them; run this again then.\n", deployments.name, f.Namespace, f.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stillThere tells how many of the deleted custom resources are left.
func (x *explorer) stillThere(ctx context.Context, p population) (waitState, error) {
	deleted := map[member]bool{}
	for _, m := range p.members {
		deleted[m] = true
	}
	left, example := 0, ""
	_, err := x.each(ctx, listing{resource: p.resource, limit: len(p.members) * 2}, func(found sighting) {
		if deleted[member{found.GetNamespace(), found.GetName(), found.GetUID()}] {
			left++
			example = found.GetNamespace() + "/" + found.GetName() + withFinalizers(found)
		}
	})
	if err != nil {
		return waitState{}, fmt.Errorf("listing %s: %w", p.resource.GroupResource(), err)
	}
	if left == 0 {
		return waitState{done: true, text: plural(p.Count, "custom resource") + " gone"}, nil
	}
	return waitState{text: fmt.Sprintf("%s left, such as %s", plural(left, "custom resource"), inline(example))}, nil
}

func withFinalizers(o metav1.Object) string {
	if len(o.GetFinalizers()) == 0 {
		return ""
	}
	return " (finalizers " + wordList(o.GetFinalizers()) + ")"
}
