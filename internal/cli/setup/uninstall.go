// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// uninstallOptions are the flags of uninstall.
type uninstallOptions struct {
	output      printer.Output
	namespace   string // of the controllers
	keep        bool
	remove      bool
	definitions bool
	yes         bool
	dryRun      bool
	timeout     time.Duration
}

// UninstallCommand returns the command uninstall.
func UninstallCommand(a *kit.App) *cobra.Command {
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:     "uninstall",
		GroupID: kit.GroupOperate,
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
		Example: a.Example(`
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
				return kit.UsageError(cmd, "--keep-workloads keeps what --delete-deployments removes: use only one of the two")
			case o.output != printer.OutputText && !o.dryRun:
				return kit.UsageError(cmd, "-o %s is for --dry-run", o.output)
			}
			return uninstall(cmd.Context(), a, o)
		},
	}
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "system-namespace", kit.SystemNamespace, "Where the controllers are.")
	flags.BoolVar(&o.keep, "keep-workloads", false, "Delete the BundleDeployments, and keep their objects running.")
	flags.BoolVar(&o.remove, "delete-deployments", false, "Delete the BundleDeployments and their objects.")
	flags.BoolVar(&o.definitions, "crds", false, "Delete Satchel's CRDs too, and all resources of them.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only list what would be deleted and what would stay.")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "How long to wait.")
	a.CompleteFlag(cmd, "system-namespace", a.CompleteNamespaces)
	return cmd
}

func uninstall(ctx context.Context, a *kit.App, o uninstallOptions) error {
	u, err := newUninstaller(ctx, a, o)
	if err != nil {
		return err
	}
	if o.dryRun {
		return u.printPlan()
	}
	if u.isEmpty() {
		fmt.Fprintf(a.Streams.Out, "Satchel is not installed in the namespace %s; nothing to do.\n", o.namespace)
		return nil
	}
	fmt.Fprint(a.Streams.Out, u.plan.print(printer.StyleFor(a.Streams.Out)))
	if err := u.refuse(); err != nil {
		return err
	}
	if err := confirmUninstall(ctx, a, o); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, kit.ErrTooLong)
	defer cancel()
	if err := u.carryOut(waiting); err != nil {
		return err
	}
	fmt.Fprintln(a.Streams.Out, "Satchel is removed.")
	return nil
}

func confirmUninstall(ctx context.Context, a *kit.App, o uninstallOptions) error {
	switch {
	case o.yes:
		return nil
	case !a.CanAsk():
		return errors.New("cannot ask for confirmation without a terminal: add --yes to remove Satchel")
	}
	return a.Confirm(ctx, "Remove it? Type yes: ", "yes", "Nothing was removed.")
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
			view.Plural(count, "BundleDeployment"), view.Inline(strings.Join(shown, ", ")))
	case u.flags.remove && !u.available:
		return fmt.Errorf("nothing was removed, because the deployment controller does not run in the namespace %s, and only it removes what %s installed: "+
			"see %s check, or let it run with --keep-workloads", u.Namespace, view.Plural(count, "BundleDeployment"), u.app.Name)
	}
	return nil
}
