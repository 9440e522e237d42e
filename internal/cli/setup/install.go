// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert/helm/document"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/internal/view"
)

// installOptions are the flags of install.
type installOptions struct {
	output    printer.Output
	namespace string // of the controllers
	files     []string
	set       []string
	values    map[string]any // of files and set
	single    singleValues
	export    bool
	version   bool
	dryRun    bool
	downgrade bool
	wait      bool
	timeout   time.Duration
	given     func(flag string) bool // on the command line
}

const installHelp = `Checks the requirements (see check --pre), tries everything as a dry run on the API server, applies the CRDs, RBAC,
policies and controllers that this program embeds, waits until the controllers run, and removes objects of an earlier
version that this one does not have. Running it again changes nothing; running it from a newer program upgrades Satchel.
Objects that BundleDeployments installed are not changed.

The images of the controllers have to be in a registry that the cluster reaches: --registry and --tag say where,
--image names one in full. The tag is by default the version of this program. --values takes values of the Helm chart
(charts/satchel), which this command renders: resources, tolerations, proxies, volumes and so on. The values are
stored in the cluster, so an upgrade only needs those that change; with --values, the files replace all stored values.

--with rollouts adds BundleRollouts, which install a bundle on many clusters. An upgrade keeps them; to remove their
controller again, use --set rollouts.enabled=false.

It does not take over an installation of Helm, Flux or Argo CD, and downgrades only with --allow-downgrade. The API server
refuses CRDs that cannot read the stored objects. It never removes CustomResourceDefinitions and volumes.

Exit codes:

    0    installed (with --dry-run: possible; with --wait=false: applied)
    1    the cluster does not meet the requirements, or the controllers do not run within --timeout
    2    failed: no access, refused
    130  interrupted by Ctrl-C; run it again to go on`

// InstallCommand returns the command install.
func InstallCommand(a *kit.App) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:     "install",
		GroupID: kit.GroupOperate,
		Short:   "Install Satchel itself in a cluster, or upgrade it",
		Long:    installHelp,
		Example: a.Example(`
# What would be done?
satchel install --registry registry.example.com/satchel --dry-run

# Install, and later upgrade with the same options
satchel install --registry registry.example.com/satchel
satchel install

# With BundleRollouts, for many clusters
satchel install --registry registry.example.com/satchel --with rollouts

# With values of the chart
satchel install --values satchel-values.yaml

# Manifests to commit to Git
satchel install --registry registry.example.com/satchel --export > satchel.yaml`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.given = cmd.Flags().Changed
			if err := o.readValues(a.Streams.In); err != nil {
				return err
			}
			switch {
			case o.given("ephemeral-storage") && (o.given("storage-class") || o.given("storage-size")):
				return kit.UsageError(cmd, "--ephemeral-storage has neither class nor size: use only one of the two")
			case o.output != printer.OutputText && !o.dryRun:
				return kit.UsageError(cmd, "-o %s is for --dry-run", o.output)
			case o.version:
				return printEmbedded(a)
			case o.export:
				return exportManifests(a, o)
			}
			return runInstall(cmd.Context(), a, o)
		},
	}
	installFlags(a, cmd, &o)
	return cmd
}

func installFlags(a *kit.App, cmd *cobra.Command, o *installOptions) {
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "system-namespace", kit.SystemNamespace, "Where the controllers run.")
	flags.StringArrayVar(&o.files, "values", nil, "File with values of the chart in YAML, or - for standard input; may be repeated, each over those before it.")
	flags.StringArrayVar(&o.set, "set", nil, "Value of the chart as path=value, over those of the files; may be repeated, and may be several with commas between.")
	o.single.flags(flags)
	flags.BoolVar(&o.export, "export", false, "Print the manifests, without a cluster.")
	flags.BoolVar(&o.version, "version", false, "Print what this program embeds, without a cluster.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only list what would change, as the API server sees it.")
	flags.BoolVar(&o.downgrade, "allow-downgrade", false, "Install an older version, although fields of resources may be lost.")
	flags.BoolVar(&o.wait, "wait", true, "Wait until the controllers run.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait.")
	a.CompleteFlag(cmd, "system-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "tenant-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "image", kit.Fixed(install.SourceController+"=", install.DeploymentController+"=", install.RolloutController+"="))
	a.CompleteFlag(cmd, "with", kit.Fixed(optionalParts()...))
	a.CompleteFlag(cmd, "storage-size", kit.Fixed(install.SourceController+"=", install.DeploymentController+"="))
}

// readValues reads the values that are given, once, because they may come from standard input.
func (o *installOptions) readValues(in io.Reader) (err error) {
	if o.values, err = bundle.ReadValues(o.files, o.set, in); err != nil {
		return err
	}
	if name, _, _ := unstructured.NestedString(o.values, "namespace", "name"); name != "" && !o.given("system-namespace") {
		o.namespace = name
	}
	return nil
}

// chosen are the options of an installation: the values of files, else those of the last installation, and over them those of
// other flags.
func chosen(a *kit.App, o installOptions, before install.Options) (install.Options, error) {
	chosen := install.Options{Namespace: o.namespace, Values: before.Values}
	isRelease := install.IsRelease(a.Version.Version)
	if isRelease {
		chosen.Version = a.Version.Version
	}
	switch {
	case len(o.files) > 0:
		chosen.Values = o.values
	default:
		if isRelease { // an upgrade takes the images of the release
			chosen.RemoveValue("image", "tag")
		}
		chosen.Values = document.Over(chosen.Values, o.values)
	}
	return chosen, o.single.set(&chosen, o.given)
}

// embedded are the objects of a first installation.
func embedded(a *kit.App, o installOptions) ([]*unstructured.Unstructured, error) {
	chosen, err := chosen(a, o, install.Options{})
	if err != nil {
		return nil, err
	}
	return install.Manifests(chosen)
}

// exportManifests prints the manifests.
func exportManifests(a *kit.App, o installOptions) error {
	objects, err := embedded(a, o)
	if err != nil {
		return err
	}
	if install.HasPlaceholders(objects) {
		fmt.Fprintf(a.Streams.ErrOut, "%s the image references are examples, and no images are published there: give --registry.\n", printer.StyleFor(a.Streams.ErrOut).Paint(printer.Yellow, "Warning:"))
	}
	return printer.WriteManifests(a.Streams.Out, objects)
}

// printEmbedded says what the program would install.
func printEmbedded(a *kit.App) error {
	everything := installOptions{given: func(string) bool { return false }, single: singleValues{with: optionalParts()}}
	objects, err := embedded(a, everything)
	if err != nil {
		return err
	}
	images := install.Images(objects)
	fmt.Fprintf(a.Streams.Out, "Satchel %s, %s\n", a.Version.Version, view.Plural(len(objects), "object"))
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			fmt.Fprintf(a.Streams.Out, "  %s %s\n", o.GetName(), strings.Join(check.ServedVersions(o), ", "))
		}
	}
	for _, controller := range install.Controllers {
		fmt.Fprintf(a.Streams.Out, "  %s %s\n", controller, images[controller])
	}
	fmt.Fprintf(a.Streams.Out, "  %s %s (with --with rollouts)\n", install.RolloutController, images[install.RolloutController])
	return nil
}

// runInstall applies what the program embeds to the cluster.
func runInstall(ctx context.Context, a *kit.App, o installOptions) error {
	i, err := newInstaller(ctx, a, o)
	if err != nil {
		return err
	}
	if err := i.preflight(ctx); err != nil {
		return err
	}
	if err := i.try(ctx); err != nil {
		return err
	}
	if o.dryRun {
		return i.printPlan()
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, kit.ErrTooLong)
	defer cancel()
	if err := i.carryOut(waiting); err != nil {
		return err
	}
	fmt.Fprintf(a.Streams.Out, "%s\n", i.summary())
	return nil
}
