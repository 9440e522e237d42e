// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/view"
)

// runOptions are the flags of run.
type runOptions struct {
	bundle.OpenOptions
	uploadOptions

	name, what       string
	namespace        string
	installNamespace string
	watchNamespaces  []string
	manifests        []string // files of -f
	account          string
	createAccount    bool
	pullSecret       string
	timeout          time.Duration
	wait, dryRun     bool
	cleanup          bool
}

// uploadOptions say how the source controller is reached.
type uploadOptions struct {
	systemNamespace string
	address         string
}

// runHelp is the help of the command run.
const runHelp = `Uploads a folder to the cluster without a registry, installs it, and shows the progress until it is Ready. Run it again
after each change; unchanged content is neither sent nor written.

    1. packs the folder as the controllers would see it, and checks it by their limits. What .satchelignore in the folder
       lists, folders of version control and symbolic links are left out
    2. with --create-service-account: creates the ServiceAccount, with the least permissions that the bundle needs (see
       the command rbac). You can only grant permissions that you have
    3. writes the BundleSource NAME, which names the content by its digest
    4. uploads the content to the source controller, by a port forward to its Pod and with a token of the ServiceAccount
       that is only valid for uploads. The content is stored only if it is complete and has that digest
    5. writes the BundleDeployment NAME, and waits

-f takes the manifest of a BundleDeployment, which gives the name and the spec, and validates it by the CRD. Its source is
used, unless a folder or an image is given in its place. The Secrets and ConfigMaps that it refers to have to exist.

An image, or with --helm-repository a chart, is fetched by the source controller, in steps 3 and 5. All objects are
labelled with satchel.dev/run, and the command delete removes them; objects of that name that run did not create are
not changed.

Exit codes:

    0    it is Ready (with --wait=false: it was written; with --dry-run: it was printed)
    1    it is not Ready within --timeout, or needs user action
    2    failed: wrong use, a refused bundle, no access
    130  interrupted by Ctrl-C (the controllers go on; with --cleanup: it was removed)`

// Command returns the command run.
func Command(a *kit.App) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run NAME PATH|IMAGE|CHART | run -f FILE [PATH|IMAGE]",
		GroupID: kit.GroupAuthor,
		Short:   "Run a bundle from a folder, an image or a Helm repository on the cluster",
		Long:    runHelp,
		Example: a.Example(`
# Try what you are working on, with the ServiceAccount "installer"
satchel run greeter ./bundle

# The same with a ServiceAccount of its own, which has only the permissions that the bundle needs
satchel run greeter ./bundle --create-service-account

# Test it once, and remove everything
satchel run greeter ./bundle --create-service-account --cleanup

# The committed manifest with the working copy of its bundle
satchel run -f deploy/greeter.yaml ./bundle

# An image from a registry
satchel run greeter quay.io/org/greeter-bundle:v1.2.3

# A chart of a Helm repository
satchel run ingress ingress --helm-repository https://charts.example.org/stable --version 4.x`),
		ValidArgsFunction: func(arg0 *cobra.Command, args []string, arg2 string) ([]string, cobra.ShellCompDirective) {
			return completeRun(a, arg0, args, arg2)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return runBundle(cmd.Context(), a, o)
		},
	}
	runFlags(a, cmd, &o)
	return cmd
}

func runFlags(a *kit.App, cmd *cobra.Command, o *runOptions) {
	bundle.Flags(a, cmd, &o.OpenOptions)
	o.uploadOptions.flags(a, cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.installNamespace, "install-namespace", "", "Namespace of the objects that name none; without it: that of the BundleDeployment.")
	flags.StringArrayVar(&o.watchNamespaces, "watch-namespace", nil, "Namespace that the operator of a registry+v1 bundle watches; may be repeated.")
	manifests.Flag(cmd, &o.manifests, "Its name and spec are used; flags take precedence.")
	flags.StringVar(&o.account, "service-account", "", `ServiceAccount that installs the bundle; without it: that of -f, or "installer".`)
	flags.BoolVar(&o.createAccount, "create-service-account", false, "Create the ServiceAccount, with the least permissions that the bundle needs.")
	flags.StringVar(&o.pullSecret, "pull-secret", "", "Secret of the namespace with the login to the registry of an image, or to the Helm repository.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long everything may take.")
	flags.BoolVar(&o.wait, "wait", true, "Wait until it is Ready.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only print what would be written.")
	flags.BoolVar(&o.cleanup, "cleanup", false, "Remove everything when it is Ready, when it failed, and on Ctrl-C.")
	a.CompleteFlag(cmd, "install-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "watch-namespace", a.CompleteNamespaces)
}

// flags adds the flags about the source controller.
func (o *uploadOptions) flags(a *kit.App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.systemNamespace, "system-namespace", "satchel-system", "Namespace of the controllers.")
	cmd.Flags().StringVar(&o.address, "upload-address", "", "Where the source controller accepts uploads, as 127.0.0.1:9091, when it is no Pod of the cluster.")
	a.CompleteFlag(cmd, "system-namespace", a.CompleteNamespaces)
}

// check reads the arguments.
func (o *runOptions) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && o.HelmRepository != "":
		return kit.UsageError(cmd, "--helm-repository needs the name of a chart")
	case len(o.manifests) > 0 && len(args) <= 1:
		o.what = strings.Join(args, "")
	case len(o.manifests) > 0:
		return kit.UsageError(cmd, "with -f, run takes one folder or image in place of the source, or none, got %s", kit.Given(args))
	case len(args) != 2:
		return kit.UsageError(cmd, "run needs a name and one folder, image or chart, got %s", kit.Given(args))
	default:
		o.name, o.what = args[0], args[1]
		if wrong := validation.IsDNS1123Label(o.name); len(wrong) > 0 {
			return kit.UsageError(cmd, "the name %q cannot be that of a BundleDeployment: %s", o.name, wrong[0])
		}
	}
	if o.cleanup && !o.wait {
		return kit.UsageError(cmd, "--cleanup removes it when it is Ready, and --wait=false does not wait for that: use only one of the two")
	}
	if o.cleanup && o.dryRun {
		return kit.UsageError(cmd, "--dry-run writes nothing that --cleanup could remove: use only one of the two")
	}
	return nil
}

// completeRun completes a folder after the name.
func completeRun(_ *kit.App, _ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// cleanupTimeout is how long the removal of --cleanup may take.
const cleanupTimeout = 10 * time.Minute

// runBundle runs all steps of the help, and with --cleanup removes the objects afterwards.
func runBundle(ctx context.Context, a *kit.App, o runOptions) error {
	x, err := a.Explore()
	if err != nil {
		return err
	}
	r := &run{App: a, Explorer: x, options: o}
	if err := r.declare(ctx); err != nil {
		return err
	}
	o = r.options
	defer func() { _ = r.close() }() // temporary files
	bounded, cancel := context.WithTimeoutCause(ctx, o.timeout, kit.ErrTooLong)
	defer cancel()
	err = r.all(bounded)
	if errors.Is(err, kit.ErrTooLong) || err != nil && ctx.Err() == nil && errors.Is(context.Cause(bounded), kit.ErrTooLong) && !errors.Is(err, kit.ErrNo) {
		fmt.Fprintf(a.Streams.Out, "%s: not within %s: %v\n", r.target(), view.Short(o.timeout), view.Printable(err.Error()))
		err = kit.ErrNo
	}
	if !o.cleanup || !r.wrote {
		return err
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return errors.Join(err, remove.Run(after, a, x, o.name, o.installNamespace, cleanupTimeout))
}
