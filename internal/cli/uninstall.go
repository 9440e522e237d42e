// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// uninstallOptions are the flags of uninstall.
type uninstallOptions struct {
	output      output
	namespace   string // of the controllers
	keep        bool
	remove      bool
	definitions bool
	yes         bool
	dryRun      bool
	timeout     time.Duration
}

func (a *app) uninstallCommand() *cobra.Command {
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:     "uninstall",
		GroupID: groupOperate,
		Short:   "Remove Satchel itself from a cluster, after showing what is deleted and what stays",
		Long: `Lists what is deleted and what stays, asks, removes the controllers with their RBAC, policies and volumes, and waits
until all of it is gone. Without a terminal, --yes is needed. It can be run again after it was interrupted.

While there are BundleDeployments, one of two flags is needed. With --delete-deployments they are deleted, and the
controllers remove their objects before the controllers are removed. With --keep-workloads they are deleted, and their
objects stay and keep running, annotated as orphaned: the next BundleDeployment that contains them adopts them. If the
controllers do not run, this program removes the finalizers instead.

Satchel's CRDs stay, and BundleSources and BundleApprovals with them, unless --crds is given. The namespace is deleted if
the installation created it, and if it holds no other objects.

Exit codes:

    0    gone (with --dry-run: listed)
    1    not gone within --timeout, or the answer to the question was no
    2    failed: no access, refused, not confirmed
    130  interrupted by Ctrl-C; run it again to go on`,
		Example: a.example(`
# What would be deleted?
satchel uninstall --dry-run

# Release the installed objects, and let them run
satchel uninstall --keep-workloads

# Remove everything, in a script
satchel uninstall --delete-deployments --crds --yes`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.keep && o.remove:
				return usageError(cmd, "--keep-workloads keeps what --delete-deployments removes: use only one of the two")
			case o.output != outputText && !o.dryRun:
				return usageError(cmd, "-o %s is for --dry-run", o.output)
			}
			return a.uninstall(cmd.Context(), o)
		},
	}
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML)
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "system-namespace", systemNamespace, "Where the controllers are.")
	flags.BoolVar(&o.keep, "keep-workloads", false, "Delete the BundleDeployments, and keep their objects running.")
	flags.BoolVar(&o.remove, "delete-deployments", false, "Delete the BundleDeployments and their objects.")
	flags.BoolVar(&o.definitions, "crds", false, "Delete Satchel's CRDs too, and all resources of them.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only list what would be deleted and what would stay.")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "How long to wait.")
	a.completeFlag(cmd, "system-namespace", a.completeNamespaces)
	return cmd
}

func (a *app) uninstall(ctx context.Context, o uninstallOptions) error {
	u, err := a.newUninstaller(ctx, o)
	if err != nil {
		return err
	}
	if o.dryRun {
		return u.printPlan()
	}
	if u.isEmpty() {
		fmt.Fprintf(a.streams.Out, "Satchel is not installed in the namespace %s; nothing to do.\n", o.namespace)
		return nil
	}
	fmt.Fprint(a.streams.Out, u.plan.print(styleFor(a.streams.Out)))
	if err := u.refuse(); err != nil {
		return err
	}
	if err := a.confirmUninstall(ctx, o); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, errTooLong)
	defer cancel()
	if err := u.carryOut(waiting); err != nil {
		return err
	}
	fmt.Fprintln(a.streams.Out, "Satchel is removed.")
	return nil
}

func (a *app) confirmUninstall(ctx context.Context, o uninstallOptions) error {
	switch {
	case o.yes:
		return nil
	case !a.canAsk():
		return errors.New("cannot ask for confirmation without a terminal: add --yes to remove Satchel")
	}
	return a.confirm(ctx, "Remove it? Type yes: ", "yes")
}

// mostRefused is how many deployments a refusal names.
const mostRefused = 10

// refuse requires one of the flags about the deployments, and refuses a removal that could not be completed.
func (u *uninstaller) refuse() error {
	count := len(u.deployments)
	if count == 0 {
		return nil
	}
	switch {
	case !u.flags.keep && !u.flags.remove:
		var shown []string
		for _, d := range u.deployments[:min(mostRefused, count)] {
			shown = append(shown, d.GetNamespace()+"/"+d.GetName())
		}
		if count > mostRefused {
			shown = append(shown, fmt.Sprintf("and %d more", count-mostRefused))
		}
		return fmt.Errorf("nothing was removed, because there are %s (%s): choose what happens to their objects, --keep-workloads or --delete-deployments",
			plural(count, "BundleDeployment"), inline(strings.Join(shown, ", ")))
	case u.flags.remove && !u.available:
		return fmt.Errorf("nothing was removed, because the deployment controller does not run in the namespace %s, and only it removes what %s installed: "+
			"see %s check, or let it run with --keep-workloads", u.namespace, plural(count, "BundleDeployment"), u.app.name)
	}
	return nil
}
