// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/internal/view"
)

// installOptions are the flags of install.
type installOptions struct {
	output    printer.Output
	settings  install.Options
	policies  bool
	export    bool
	version   bool
	dryRun    bool
	downgrade bool
	wait      bool
	timeout   time.Duration
	given     func(flag string) bool // on the command line
}

// InstallCommand returns the command install.
func InstallCommand(a *kit.App) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:     "install",
		GroupID: kit.GroupOperate,
		Short:   "Install Satchel itself in a cluster, or upgrade it",
		Long: `Checks the requirements (see check --pre), tries everything as a dry run on the API server, applies the CRDs, RBAC,
policies and controllers that this program embeds, waits until the controllers run, and removes objects of an earlier
version that this one does not have. Running it again changes nothing; running it from a newer program upgrades Satchel.
Objects that BundleDeployments installed are not changed.

The images of the controllers have to be in a registry that the cluster reaches: --registry and --tag say where, --image
names one in full. The tag is by default the version of this program. The options are stored in the cluster, so an upgrade
only needs those that change.

It does not take over an installation of Helm, Flux or Argo CD, does not downgrade to CRDs that cannot read the stored
objects, and downgrades only with --allow-downgrade. It never removes CustomResourceDefinitions and volumes.

Exit codes:

    0    installed (with --dry-run: possible; with --wait=false: applied)
    1    the cluster does not meet the requirements, or the controllers do not run within --timeout
    2    failed: no access, refused
    130  interrupted by Ctrl-C; run it again to go on`,
		Example: a.Example(`
# What would be done?
satchel install --registry registry.example.com/satchel --dry-run

# Install, and later upgrade with the same options
satchel install --registry registry.example.com/satchel
satchel install

# Manifests to commit to Git
satchel install --registry registry.example.com/satchel --export > satchel.yaml`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.given = cmd.Flags().Changed
			o.settings.WithoutNetworkPolicies = !o.policies
			switch {
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
	flags, s := cmd.Flags(), &o.settings
	flags.StringVar(&s.Namespace, "system-namespace", kit.SystemNamespace, "Where the controllers run.")
	flags.StringVar(&s.Registry, "registry", "", "What the names of both images begin with, such as registry.example.com/satchel.")
	flags.StringVar(&s.Tag, "tag", "", "The tag of both images; by default the version of this program.")
	flags.StringToStringVar(&s.Images, "image", nil, "The image of a controller in full, such as bundle-source-controller=REFERENCE; may be repeated.")
	flags.StringSliceVar(&s.PullSecrets, "pull-secret", nil, "A Secret in the controllers' namespace with which the images are pulled; may be repeated.")
	flags.Int64Var(&s.Replicas, "replicas", 0, "Replicas of each controller, one of them the leader; more than 1 needs --ephemeral-storage.")
	flags.BoolVar(&s.EphemeralStorage, "ephemeral-storage", false, "Keep artifacts and caches with the Pods instead of in volumes: a restart fetches everything again.")
	flags.StringVar(&s.StorageClass, "storage-class", "", "The storage class of the volumes; by default that of the cluster.")
	flags.StringToStringVar(&s.StorageSizes, "storage-size", nil, "The size of a controller's volume, such as bundle-source-controller=50Gi; may be repeated.")
	flags.StringVar(&s.Selector, "watch-label-selector", "", "Reconcile only objects with matching labels.")
	flags.BoolVar(&o.policies, "network-policies", true, "Install the NetworkPolicies of the controllers.")
	flags.BoolVar(&s.AuthenticatedArtifacts, "authenticated-artifacts", false, "Have the artifact server ask for tokens; Flux cannot load artifacts then.")
	flags.StringSliceVar(&s.TenantNamespaces, "tenant-namespace", nil, "Let the controllers impersonate ServiceAccounts and read Secrets in this namespace only, instead of in all; may be repeated.")
	flags.BoolVar(&o.export, "export", false, "Print the manifests, without a cluster.")
	flags.BoolVar(&o.version, "version", false, "Print what this program embeds, without a cluster.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only list what would change, as the API server sees it.")
	flags.BoolVar(&o.downgrade, "allow-downgrade", false, "Install an older version, although fields of resources may be lost.")
	flags.BoolVar(&o.wait, "wait", true, "Wait until the controllers run.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait.")
	a.CompleteFlag(cmd, "system-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "tenant-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "image", kit.Fixed(install.SourceController+"=", install.DeploymentController+"="))
	a.CompleteFlag(cmd, "storage-size", kit.Fixed(install.SourceController+"=", install.DeploymentController+"="))
}

// chosen are the options of an installation: those of the command line, else those of the last installation.
func chosen(a *kit.App, o installOptions, before install.Options) install.Options {
	chosen := o.settings
	for flag, remember := range map[string]func(){
		"registry":                func() { chosen.Registry = before.Registry },
		"tag":                     func() { chosen.Tag = before.Tag },
		"image":                   func() { chosen.Images = before.Images },
		"pull-secret":             func() { chosen.PullSecrets = before.PullSecrets },
		"replicas":                func() { chosen.Replicas = before.Replicas },
		"ephemeral-storage":       func() { chosen.EphemeralStorage = before.EphemeralStorage },
		"storage-class":           func() { chosen.StorageClass = before.StorageClass },
		"storage-size":            func() { chosen.StorageSizes = before.StorageSizes },
		"watch-label-selector":    func() { chosen.Selector = before.Selector },
		"network-policies":        func() { chosen.WithoutNetworkPolicies = before.WithoutNetworkPolicies },
		"authenticated-artifacts": func() { chosen.AuthenticatedArtifacts = before.AuthenticatedArtifacts },
		"tenant-namespace":        func() { chosen.TenantNamespaces = before.TenantNamespaces },
	} {
		if !o.given(flag) {
			remember()
		}
	}
	if !o.given("tag") && install.IsRelease(a.Version.Version) {
		chosen.Tag = a.Version.Version
	}
	return chosen
}

// exportManifests prints the manifests.
func exportManifests(a *kit.App, o installOptions) error {
	chosen := chosen(a, o, install.Options{})
	objects, err := install.Manifests(chosen)
	if err != nil {
		return err
	}
	if chosen.HasPlaceholders() {
		fmt.Fprintf(a.Streams.ErrOut, "%s the image references are examples, and no images are published there: give --registry.\n", printer.StyleFor(a.Streams.ErrOut).Paint(printer.Yellow, "Warning:"))
	}
	return printer.WriteManifests(a.Streams.Out, objects)
}

// printEmbedded says what the program would install.
func printEmbedded(a *kit.App) error {
	chosen := chosen(a, installOptions{given: func(string) bool { return false }}, install.Options{})
	objects, err := install.Manifests(chosen)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Streams.Out, "Satchel %s, %s\n", a.Version.Version, view.Plural(len(objects), "object"))
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			fmt.Fprintf(a.Streams.Out, "  %s %s\n", o.GetName(), strings.Join(check.ServedVersions(o), ", "))
		}
	}
	for _, controller := range install.Controllers {
		fmt.Fprintf(a.Streams.Out, "  %s %s\n", controller, chosen.Image(controller))
	}
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
