// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
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
	output          output
}

func (a *app) adoptCommand() *cobra.Command {
	var o adoptOptions
	cmd := &cobra.Command{
		Use:     "adopt [deployment] NAME",
		GroupID: groupOperate,
		Short:   "Take over what runs already, without a restart",
		Long: `A BundleDeployment does not change objects of another owner: where objects of its bundle exist already, its plan is
refused. This command takes them over. It reads the bundle as the controller does, and shows which objects exist, their
owners (OLM, RukPak, Helm, Flux, Argo CD, or none), which workloads would restart and why, and which objects the former
owner has that are not in the bundle. Once you confirm, it then, in this order,

    1. with --delete-former: deletes the Subscription, so that OLM installs nothing again
    2. releases each object: removes owner references, labels, annotations and finalizers of the former owner, and sets
       the annotation satchel.dev/orphaned, in one write that fails if the object changed; only these objects become
       adoptable
    3. with --delete-former: deletes the ClusterServiceVersion, ClusterExtension or BundleDeployment of RukPak, or the
       Secrets of the Helm release, without the objects that it owns
    4. requests a reconcile: the controller adopts the objects, impersonating the deployment's ServiceAccount
    5. with --delete-leftovers: deletes the former owner's objects that are not in the bundle, apart from
       CustomResourceDefinitions, once the deployment is Ready

It is safe to interrupt the command up to step 4: released objects keep running, and the next run continues. Released
objects no longer name their former owner, so --former has to name it for --delete-former and --delete-leftovers. As long
as a former owner exists it may take the objects back; without --delete-former the command says how to remove it.
Objects of another BundleDeployment are never taken over. A Pod restarts only where the bundle's template differs from
the running one; then --allow-restarts is needed.

You need permission to get and patch the objects; the deployment's ServiceAccount needs what the rbac command prints.

Exit codes:

    0    taken over, or with --dry-run: nothing is in the way
    1    something is in the way, it was declined, or the deployment is not Ready
    2    failed: wrong use, not found, no access, a refused bundle
    130  interrupted by Ctrl-C`,
		Example: a.example(`
# Show what would be adopted
satchel adopt my-operator -n operators --dry-run

# Take it over from the Operator Lifecycle Manager, and clean up
satchel adopt my-operator -n operators --delete-former --delete-leftovers`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneTarget(cmd, args)
			if err == nil {
				err = a.checkAdopt(cmd, o, t)
			}
			if err != nil {
				return err
			}
			return a.adopt(cmd.Context(), o, t)
		},
	}
	a.adoptFlags(cmd, &o)
	return cmd
}

// adoptFlags adds the flags of adopt.
func (a *app) adoptFlags(cmd *cobra.Command, o *adoptOptions) {
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML)
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "Show what would happen, and change nothing.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	flags.StringVar(&o.former, "former", "", "Former owner of objects that no longer name it: csv/NAME, clusterextension/NAME, rukpak/NAME or helm/NAME.")
	flags.BoolVar(&o.deleteFormer, "delete-former", false, "Delete the former owner, without what it owned.")
	flags.BoolVar(&o.deleteLeftovers, "delete-leftovers", false, "Delete the former owner's objects that are not in the bundle, once the deployment is Ready.")
	flags.BoolVar(&o.allowRestarts, "allow-restarts", false, "Take over even where Pods restart.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait until the deployment is Ready.")
}

// checkAdopt refuses flags that exclude each other, and requires --yes or --dry-run without a terminal.
func (a *app) checkAdopt(cmd *cobra.Command, o adoptOptions, t target) error {
	switch {
	case t.kind.name != deployments.name:
		return usageError(cmd, "adopt is for BundleDeployments")
	case o.former != "" && !isFormer(o.former):
		return usageError(cmd, "--former %q is none of csv/NAME, clusterextension/NAME, rukpak/NAME and helm/NAME", o.former)
	case o.dryRun && o.yes:
		return usageError(cmd, "--dry-run asks nothing, so --yes has no effect")
	case !o.dryRun && o.output != outputText:
		return usageError(cmd, "-o %s shows what would happen: add --dry-run", o.output)
	case !o.dryRun && !o.yes && !isTerminalInput(a.streams.In):
		return usageError(cmd, "cannot ask for confirmation without a terminal: add --yes, or --dry-run to look first")
	}
	return nil
}

// adopt shows what would be taken over, asks, and takes it over.
func (a *app) adopt(ctx context.Context, o adoptOptions, t target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	d, err := c.adoptable(ctx, t)
	if err != nil {
		return err
	}
	result, err := a.published(ctx, c, d)
	if err != nil {
		return err
	}
	w, err := a.newAdopter(c, d)
	if err != nil {
		return err
	}
	w.former = formerNamed(o.former, d.InstallNamespaceOrDefault())
	found, err := w.look(ctx, result)
	if err != nil {
		return err
	}
	if err := a.printAdoption(o, found); err != nil {
		return err
	}
	switch {
	case len(found.with(inTheWay)) > 0:
		return errNo
	case o.dryRun:
		return nil
	case len(found.Restarts) > 0 && !o.allowRestarts:
		fmt.Fprintln(a.streams.ErrOut, "Nothing is taken over, for Pods would restart: adjust spec.registryV1 so that the templates are equal, or add --allow-restarts.")
		return errNo
	}
	if agreed, err := a.agreed(ctx, o, found); err != nil {
		return err
	} else if !agreed {
		return errNo
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, errTooLong)
	defer cancel()
	return w.takeOver(waiting, o, t, found)
}

// adoptable reads the deployment, and refuses one that could not adopt anything.
func (c *cluster) adoptable(ctx context.Context, t target) (*v1alpha1.BundleDeployment, error) {
	read, err := c.get(ctx, t)
	if err != nil {
		return nil, err
	}
	d, ok := read.(*v1alpha1.BundleDeployment)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is no %s", t.name, deployments.name)
	case d.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the %s %q is being deleted", t.kind.name, t.name)
	case d.Spec.Suspend:
		return nil, fmt.Errorf("the %s %q is suspended, so it would not adopt the released objects: set spec.suspend to false first", t.kind.name, t.name)
	case d.Spec.KubeConfig != nil:
		return nil, fmt.Errorf("the %s %q installs on another cluster, which this command does not reach: set spec.collisionProtection to None for the time of the take-over", t.kind.name, t.name)
	}
	return d, nil
}

// agreed asks on the terminal.
func (a *app) agreed(ctx context.Context, o adoptOptions, found adoption) (bool, error) {
	if o.yes || len(found.with(takenOver)) == 0 && !o.deleteFormer && !o.deleteLeftovers {
		return true, nil
	}
	fmt.Fprintf(a.streams.ErrOut, "Take over %s? [y/N] ", plural(len(found.with(takenOver)), "object"))
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.streams.In).ReadString('\n')
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

// takeOver hands the objects over, in an order in which each object has an owner as long as possible.
func (w *adopter) takeOver(ctx context.Context, o adoptOptions, t target, found adoption) error {
	objects := found.with(takenOver)
	if o.deleteFormer {
		if err := w.stopUpgrades(ctx, found.Former); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := w.release(ctx, object); err != nil {
			return err
		}
		fmt.Fprintf(w.app.streams.Out, "%s: released\n", inline(object.ID))
	}
	if o.deleteFormer {
		if err := w.deleteFormer(ctx, found); err != nil {
			return err
		}
	}
	if err := w.app.reconcileOne(ctx, w.cluster, t, reconcileOptions{wait: true, timeout: o.timeout}); err != nil {
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

// deleteFormer deletes the former owners. Before, it releases again the objects that they have taken back meanwhile.
func (w *adopter) deleteFormer(ctx context.Context, found adoption) error {
	for _, owner := range found.Former {
		if !owner.removable() {
			fmt.Fprintf(w.app.streams.ErrOut, "%s is not deleted automatically, remove it yourself: %s\n", inline(owner.String()), inline(owner.Removal))
			continue
		}
		again, err := w.taken(ctx, found.with(takenOver))
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

// confirmed checks that the former owners have not taken any object back.
func (w *adopter) confirmed(ctx context.Context, objects []adoptedObject) error {
	again, err := w.taken(ctx, objects)
	if err != nil {
		return err
	}
	if len(again) > 0 {
		for _, object := range again {
			fmt.Fprintf(w.app.streams.Out, "%s: taken back by its former owner\n", inline(object.ID))
		}
		fmt.Fprintln(w.app.streams.ErrOut, "A former owner still manages these objects: remove it, with --delete-former or as said above, and adopt them again.")
		return errNo
	}
	fmt.Fprintf(w.app.streams.Out, "%s taken over.\n", plural(len(objects), "object"))
	return nil
}
