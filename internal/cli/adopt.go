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
		Long: `A BundleDeployment does not touch objects of somebody else: where some of its bundle exist already, its plan is
refused. This command takes them over. It reads the bundle as the controller does, and shows which objects exist, whose
they are (of OLM, RukPak, Helm, Flux, Argo CD, or of nobody), which workloads would restart and why, and what the former
owner has beside the bundle. Asked for it, it then, in this order,

    1. with --delete-former: deletes the Subscription, so that OLM installs nothing again
    2. releases each object: owner references, marks and finalizers of the former owner go, and the annotation
       satchel.dev/orphaned comes, in one write of exactly what was read; only these objects can be adopted thereby
    3. with --delete-former: deletes the ClusterServiceVersion, ClusterExtension or BundleDeployment of RukPak, or the
       Secrets of the Helm release, and nothing that belongs to it
    4. has the deployment reconciled: the controller adopts the objects, as the deployment's account
    5. with --delete-leftovers: deletes what the former owner had beside the bundle, apart from
       CustomResourceDefinitions, once the deployment is Ready

Everything up to step 4 is harmless when it is interrupted: released objects run on, and the next attempt goes on; they
do not say any more whose they were, so that --former has to name it for --delete-former and --delete-leftovers. As long
as a former owner is there it may take the objects back; without --delete-former the command says how to let it go.
Nothing that another BundleDeployment has is ever taken. A Pod restarts only where the bundle's template differs from
the running one; then --allow-restarts is needed.

You need the right to get and patch the objects; the deployment's account needs what the rbac command prints.

Exit codes:

    0    taken over, or with --dry-run: nothing is in the way
    1    something is in the way, it was declined, or the deployment is not Ready
    2    failed: wrong use, not found, no access, a refused bundle
    130  interrupted by Ctrl-C`,
		Example: a.example(`
# What would become of it?
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
	flags.StringVar(&o.former, "former", "", "Who owned the objects, where they do not say it any more: csv/NAME, clusterextension/NAME, rukpak/NAME or helm/NAME.")
	flags.BoolVar(&o.deleteFormer, "delete-former", false, "Delete the former owner, without what it owned.")
	flags.BoolVar(&o.deleteLeftovers, "delete-leftovers", false, "Delete what the former owner had beside the bundle, once the deployment is Ready.")
	flags.BoolVar(&o.allowRestarts, "allow-restarts", false, "Take over even where Pods restart.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait until the deployment is Ready.")
}

// checkAdopt refuses flags that make no sense together, and to go on where nobody can be asked.
func (a *app) checkAdopt(cmd *cobra.Command, o adoptOptions, t target) error {
	switch {
	case t.kind.name != deployments.name:
		return usageError(cmd, "adopt is for BundleDeployments")
	case o.former != "" && !isFormer(o.former):
		return usageError(cmd, "--former %q is none of csv/NAME, clusterextension/NAME, rukpak/NAME and helm/NAME", o.former)
	case o.dryRun && o.yes:
		return usageError(cmd, "--dry-run asks nothing, so --yes says nothing")
	case !o.dryRun && o.output != outputText:
		return usageError(cmd, "-o %s shows what would happen: add --dry-run", o.output)
	case !o.dryRun && !o.yes && !isTerminalInput(a.streams.In):
		return usageError(cmd, "nobody can be asked here: add --yes, or --dry-run to look first")
	}
	return nil
}

// adopt looks, shows, asks, and takes over.
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

// adoptable reads the deployment, and refuses those for which nothing would happen.
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
		return nil, fmt.Errorf("the %s %q is suspended, so it would not take up what is released: set spec.suspend to false first", t.kind.name, t.name)
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

// takeOver does what was agreed upon, in an order in which nothing is ever without somebody who keeps it.
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

// deleteFormer lets the former owners go, after whatever they have taken back meanwhile is released again.
func (w *adopter) deleteFormer(ctx context.Context, found adoption) error {
	for _, owner := range found.Former {
		if !owner.removable() {
			fmt.Fprintf(w.app.streams.ErrOut, "%s has to be let go by yourself: %s\n", inline(owner.String()), inline(owner.LetGo))
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
		if err := w.letGo(ctx, owner); err != nil {
			return err
		}
	}
	return nil
}

// confirmed makes sure that everything is the deployment's, and nobody else's any more.
func (w *adopter) confirmed(ctx context.Context, objects []adoptedObject) error {
	again, err := w.taken(ctx, objects)
	if err != nil {
		return err
	}
	if len(again) > 0 {
		for _, object := range again {
			fmt.Fprintf(w.app.streams.Out, "%s: taken back by its former owner\n", inline(object.ID))
		}
		fmt.Fprintln(w.app.streams.ErrOut, "A former owner still looks after these objects: let it go, with --delete-former or as said above, and adopt them again.")
		return errNo
	}
	fmt.Fprintf(w.app.streams.Out, "%s taken over.\n", plural(len(objects), "object"))
	return nil
}
