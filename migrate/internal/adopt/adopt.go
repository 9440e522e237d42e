// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/act"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// adoptOptions are the flags of adopt.
type adoptOptions struct {
	dryRun          bool
	yes             bool
	former          string
	deleteFormer    bool
	deleteLeftovers bool
	allowRestarts   bool
	timeout         time.Duration
	limits          convert.Limits
	output          printer.Output
	exporting       exportOptions
}

// adoptHelp is the help of the command adopt.
const adoptHelp = `A BundleDeployment does not change objects of another owner: where objects of its bundle exist already, its plan is
refused. This command adopts them. It reads the bundle as the controller does, and shows which objects exist, their
owners (OLM, RukPak, Helm, Flux, Argo CD, or none), which workloads would restart and why, and which objects of the former
owner are not in the bundle. If the source is not fetched yet, the command waits for it first. When you confirm, it does
the following, in this order:

    1. with --delete-former: deletes the Subscription, so that OLM does not install the operator again
    2. releases each object: removes owner references, labels, annotations and finalizers of the former owner, and sets
       the annotation satchel.dev/orphaned, in one write that fails if the object changed; the controller adopts only
       objects with this annotation
    3. with --delete-former: deletes the ClusterServiceVersion, ClusterExtension or BundleDeployment of RukPak, or the
       Secrets of the Helm release, and orphans the objects that it owns
    4. requests a reconcile: the controller adopts the objects, impersonating the deployment's ServiceAccount
    5. with --delete-leftovers: deletes the former owner's objects that are not in the bundle, apart from
       CustomResourceDefinitions, once the deployment is Ready

It is safe to interrupt the command up to step 4: released objects keep running, and the next run continues. Released
objects no longer name their former owner, so --former has to name it for --delete-former and --delete-leftovers. As long
as a former owner exists it may adopt the objects again; without --delete-former the command prints how to remove it.
Objects of another BundleDeployment are never adopted. A Pod restarts only if the bundle's template differs from the
running one; this needs --allow-restarts.

For a Helm release, --export prints a BundleDeployment with the name of the release, the version of its chart and the
values that its user set. If these look like secrets, or with --values-secret, they are printed as a Secret. A release
does not record where its chart came from: give it with --helm-repository, --image or --git.

You need permission to get and patch the objects; the deployment's ServiceAccount needs what satchel rbac prints.

Exit codes:

    0    adopted, or with --dry-run: no conflict
    1    a conflict, Pods would restart, it was declined, or the deployment is not Ready
    2    failed: wrong use, not found, no access, a refused bundle
    130  interrupted by Ctrl-C`

// Command returns the command adopt.
func Command(a *kit.App) *cobra.Command {
	var o adoptOptions
	cmd := &cobra.Command{
		Use:   "adopt [deployment] NAME",
		Short: "Adopt objects that another tool installed, without a restart",
		Long:  adoptHelp,
		Example: a.Example(`
# Show what would be adopted
kubectl satchel-migrate adopt my-operator -n operators --dry-run

# Write the BundleDeployment of a Helm release
kubectl satchel-migrate adopt ingress -n shop --export \
  --helm-repository https://charts.example.org/stable > ingress.yaml

# Adopt an operator of the Operator Lifecycle Manager, and clean up
kubectl satchel-migrate adopt my-operator -n operators --delete-former --delete-leftovers`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneTarget(cmd, args)
			if err == nil {
				err = checkAdopt(a, cmd, o, t)
			}
			if err != nil {
				return err
			}
			if o.exporting.export {
				return export(cmd.Context(), a, o, t)
			}
			return adopt(cmd.Context(), a, o, t)
		},
	}
	adoptFlags(a, cmd, &o)
	return cmd
}

// adoptFlags adds the flags of adopt.
func adoptFlags(a *kit.App, cmd *cobra.Command, o *adoptOptions) {
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "Show what would happen, and change nothing.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	flags.StringVar(&o.former, "former", "", "Former owner of objects that no longer name it: csv/NAME, clusterextension/NAME, rukpak/NAME or helm/NAME.")
	flags.BoolVar(&o.deleteFormer, "delete-former", false, "Delete the former owner, and orphan the objects that it owns.")
	flags.BoolVar(&o.deleteLeftovers, "delete-leftovers", false, "Delete the former owner's objects that are not in the bundle, once the deployment is Ready.")
	flags.BoolVar(&o.allowRestarts, "allow-restarts", false, "Adopt the objects even if Pods restart.")
	o.exporting.flags(cmd)
	bundle.LimitFlags(cmd, &o.limits)
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait until the source is fetched, and then until the deployment is Ready.")
}

// checkAdopt refuses flags that exclude each other, and requires --yes or --dry-run without a terminal.
func checkAdopt(a *kit.App, cmd *cobra.Command, o adoptOptions, t kit.Target) error {
	switch {
	case t.Kind.Name != kit.Deployments.Name:
		return kit.UsageError(cmd, "adopt is for BundleDeployments")
	case o.former != "" && !IsFormer(o.former):
		return kit.UsageError(cmd, "--former %q is none of csv/NAME, clusterextension/NAME, rukpak/NAME and helm/NAME", o.former)
	case o.exporting.export:
		return o.exporting.check(cmd, o.former, t)
	case o.dryRun && o.yes:
		return kit.UsageError(cmd, "--dry-run asks nothing, so --yes has no effect")
	case !o.dryRun && o.output != printer.OutputText:
		return kit.UsageError(cmd, "-o %s shows what would happen: add --dry-run", o.output)
	case !o.dryRun && !o.yes && !isTerminalInput(a.Streams.In):
		return kit.UsageError(cmd, "cannot ask for confirmation without a terminal: add --yes, or --dry-run to look first")
	}
	return o.exporting.check(cmd, o.former, t)
}

// adopt shows which objects would be adopted, asks, and adopts them.
func adopt(ctx context.Context, a *kit.App, o adoptOptions, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	d, err := adoptable(ctx, c, t)
	if err != nil {
		return err
	}
	if err := awaitSource(ctx, a, c, d, o.timeout); err != nil {
		return err
	}
	result, err := published(ctx, a, c, d, o.limits)
	if err != nil {
		return err
	}
	w, err := newAdopter(a, c, d)
	if err != nil {
		return err
	}
	w.former = FormerNamed(o.former, effective.InstallNamespace(d))
	found, err := w.look(ctx, result)
	if err != nil {
		return err
	}
	if err := printAdoption(a, o, found); err != nil {
		return err
	}
	switch {
	case len(found.with(conflicting)) > 0:
		return kit.ErrNo
	case o.dryRun:
		return nil
	case len(found.Restarts) > 0 && !o.allowRestarts:
		fmt.Fprintln(a.Streams.ErrOut, "Nothing was adopted, because Pods would restart: adjust spec.registryV1 so that the templates are equal, or add --allow-restarts.")
		return kit.ErrNo
	}
	if agreed, err := agreed(ctx, a, o, found); err != nil {
		return err
	} else if !agreed {
		return kit.ErrNo
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, kit.ErrTooLong)
	defer cancel()
	return w.adoptObjects(waiting, o, t, found)
}

// adoptable reads the deployment, and refuses one that could not adopt anything.
func adoptable(ctx context.Context, c *kit.Cluster, t kit.Target) (*v1alpha1.BundleDeployment, error) {
	read, err := c.Get(ctx, t)
	if err != nil {
		return nil, err
	}
	d, ok := read.(*v1alpha1.BundleDeployment)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is no %s", t.Name, kit.Deployments.Name)
	case d.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the %s %q is being deleted", t.Kind.Name, t.Name)
	case d.Spec.Suspend:
		return nil, fmt.Errorf("the %s %q is suspended, so it would not adopt the released objects: set spec.suspend to false first", t.Kind.Name, t.Name)
	case effective.IsRemote(d.Spec.Target.ClusterReference):
		return nil, fmt.Errorf("the %s %q installs on another cluster, which this command does not reach: set spec.apply.collisionProtection to None until the objects are adopted", t.Kind.Name, t.Name)
	}
	return d, nil
}

// agreed asks on the terminal.
func agreed(ctx context.Context, a *kit.App, o adoptOptions, found Adoption) (bool, error) {
	if o.yes || len(found.with(Adopted)) == 0 && !o.deleteFormer && !o.deleteLeftovers {
		return true, nil
	}
	fmt.Fprintf(a.Streams.ErrOut, "Adopt %s? [y/N] ", view.Plural(len(found.with(Adopted)), "object"))
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.Streams.In).ReadString('\n')
		answers <- line
	}()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case line := <-answers:
		word := strings.ToLower(strings.TrimSpace(line))
		return word == "y" || word == "yes", nil
	}
}

// adoptObjects releases the objects and has the controller adopt them, in an order in which each object has an owner as long
// as possible.
func (w *adopter) adoptObjects(ctx context.Context, o adoptOptions, t kit.Target, found Adoption) error {
	objects := found.with(Adopted)
	if o.deleteFormer {
		if err := w.stopUpgrades(ctx, found.Former); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := w.release(ctx, object); err != nil {
			return err
		}
		fmt.Fprintf(w.app.Streams.Out, "%s: released\n", view.Inline(object.ID))
	}
	if o.deleteFormer {
		if err := w.deleteFormer(ctx, found); err != nil {
			return err
		}
	}
	if err := act.ReconcileOne(ctx, w.app, w.Cluster, t, act.ReconcileOptions{Wait: true, Timeout: o.timeout}); err != nil {
		return err
	}
	if err := w.confirmed(ctx, objects); err != nil {
		return err
	}
	if o.deleteLeftovers {
		return w.deleteLeftovers(ctx, found.Leftovers)
	}
	return nil
}

// deleteFormer deletes the former owners. Before, it releases again the objects that they have adopted meanwhile.
func (w *adopter) deleteFormer(ctx context.Context, found Adoption) error {
	for _, owner := range found.Former {
		if !owner.Removable() {
			fmt.Fprintf(w.app.Streams.ErrOut, "%s is not deleted automatically, remove it yourself: %s\n", view.Inline(owner.String()), view.Inline(owner.Removal))
			continue
		}
		again, err := w.adoptedAgain(ctx, found.with(Adopted))
		if err != nil {
			return err
		}
		for _, object := range again {
			if err := w.release(ctx, object); err != nil {
				return err
			}
		}
		if err := w.removeFormer(ctx, owner); err != nil {
			return err
		}
	}
	return nil
}

// confirmed checks that the former owners have not adopted any object again.
func (w *adopter) confirmed(ctx context.Context, objects []AdoptedObject) error {
	again, err := w.adoptedAgain(ctx, objects)
	if err != nil {
		return err
	}
	if len(again) > 0 {
		for _, object := range again {
			fmt.Fprintf(w.app.Streams.Out, "%s: adopted again by its former owner\n", view.Inline(object.ID))
		}
		fmt.Fprintln(w.app.Streams.ErrOut, "A former owner still manages these objects: remove it, with --delete-former or as printed above, and run this command again.")
		return kit.ErrNo
	}
	fmt.Fprintf(w.app.Streams.Out, "%s adopted.\n", view.Plural(len(objects), "object"))
	return nil
}
