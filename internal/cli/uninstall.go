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
		Short:   "Remove Satchel itself from a cluster, after showing what goes and what stays",
		Long: `Lists what goes and what stays, asks, removes the controllers with their rights, policies and volumes, and waits until
all of it is gone. Where nobody can be asked, --yes is needed. It can be run again after it was interrupted.

While there are BundleDeployments it needs to be told what becomes of them. With --delete-deployments they are deleted,
and the controllers remove what they installed, before they go themselves. With --keep-workloads they are deleted and
what they installed stays and goes on running, marked as orphaned: the next BundleDeployment that contains it takes it
up. Where the controllers do not do that, because they do not run, this program takes the finalizers away instead.

The definitions of Satchel's kinds stay, and BundleSources and BundleApprovals with them, unless --crds is given. The
namespace goes with the installation that created it, when nothing else lives in it.

Exit codes:

    0    gone (with --dry-run: listed)
    1    not gone within --timeout, or the answer to the question was no
    2    failed: no access, refused, not confirmed
    130  interrupted by Ctrl-C; run it again to go on`,
		Example: a.example(`
# What would go?
satchel uninstall --dry-run

# Give up what is installed, and let it run
satchel uninstall --keep-workloads

# Remove everything, in a script
satchel uninstall --delete-deployments --crds --yes`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.keep && o.remove:
				return usageError(cmd, "--keep-workloads lets run what --delete-deployments removes: leave one of the two out")
			case o.output != outputText && !o.dryRun:
				return usageError(cmd, "-o %s is for --dry-run", o.output)
			}
			return a.uninstall(cmd.Context(), o)
		},
	}
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML)
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "system-namespace", systemNamespace, "Where the controllers are.")
	flags.BoolVar(&o.keep, "keep-workloads", false, "Delete the BundleDeployments, and let run what they installed.")
	flags.BoolVar(&o.remove, "delete-deployments", false, "Delete the BundleDeployments, and what they installed.")
	flags.BoolVar(&o.definitions, "crds", false, "Delete the definitions of Satchel's kinds too, and all resources of them.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only list what would go and what would stay.")
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
		return errors.New("nobody can be asked here whether Satchel shall go: add --yes")
	}
	return a.confirm(ctx, "Remove it? Type yes: ", "yes")
}

// mostRefused is how many deployments a refusal names.
const mostRefused = 10

// refuse wants to be told what becomes of the deployments, and does not begin what cannot end.
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
		return fmt.Errorf("nothing was removed, for there are %s (%s): say what becomes of what they installed, --keep-workloads or --delete-deployments",
			plural(count, "BundleDeployment"), inline(strings.Join(shown, ", ")))
	case u.flags.remove && !u.available:
		return fmt.Errorf("nothing was removed, for the deployment controller does not run in the namespace %s, and nobody else removes what %s installed: "+
			"see %s check, or let it run with --keep-workloads", u.namespace, plural(count, "BundleDeployment"), u.app.name)
	}
	return nil
}
