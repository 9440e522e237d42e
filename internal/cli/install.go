// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/install"
)

// installOptions are the flags of install.
type installOptions struct {
	output    output
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

func (a *app) installCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:     "install",
		GroupID: groupOperate,
		Short:   "Install Satchel itself in a cluster, or upgrade it",
		Long: `Checks whether the cluster is fit (see check --pre), lets the API server try everything, applies the definitions, rights,
policies and controllers that this program embeds, waits until the controllers run, and removes what an earlier version
installed and this one does not. Run again it changes nothing; from a newer program it is the upgrade. No object that a
BundleDeployment installed is written for that.

The images of the controllers have to be in a registry that the cluster reaches: --registry and --tag say where, --image
names one in full. The tag is by default the version of this program. What was chosen is remembered in the cluster, so
that an upgrade only needs what is to be different.

It does not take over what Helm, Flux or Argo CD installed, does not go back to definitions that cannot read what is
stored, and goes back to an older version only with --allow-downgrade. CustomResourceDefinitions and volumes are never
removed by it.

Exit codes:

    0    installed (with --dry-run: possible; with --wait=false: applied)
    1    the cluster is not fit for it, or the controllers do not run within --timeout
    2    failed: no access, refused
    130  interrupted by Ctrl-C; run it again to go on`,
		Example: a.example(`
# What would be done?
satchel install --registry registry.example.com/satchel --dry-run

# Install, or upgrade with what was chosen then
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
			case o.output != outputText && !o.dryRun:
				return usageError(cmd, "-o %s is for --dry-run", o.output)
			case o.version:
				return a.printEmbedded()
			case o.export:
				return a.exportManifests(o)
			}
			return a.install(cmd.Context(), o)
		},
	}
	a.installFlags(cmd, &o)
	return cmd
}

func (a *app) installFlags(cmd *cobra.Command, o *installOptions) {
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML)
	flags, s := cmd.Flags(), &o.settings
	flags.StringVar(&s.Namespace, "system-namespace", systemNamespace, "Where the controllers run.")
	flags.StringVar(&s.Registry, "registry", "", "What the names of both images begin with, such as registry.example.com/satchel.")
	flags.StringVar(&s.Tag, "tag", "", "The tag of both images; by default the version of this program.")
	flags.StringToStringVar(&s.Images, "image", nil, "The image of a controller in full, such as bundle-source-controller=REFERENCE; may be repeated.")
	flags.StringSliceVar(&s.PullSecrets, "pull-secret", nil, "A Secret in the controllers' namespace with which the images are pulled; may be repeated.")
	flags.Int64Var(&s.Replicas, "replicas", 0, "Replicas of each controller, of which one leads; more than 1 takes --ephemeral-storage.")
	flags.BoolVar(&s.EphemeralStorage, "ephemeral-storage", false, "Keep artifacts and caches with the Pods instead of in volumes: a restart fetches everything again.")
	flags.StringVar(&s.StorageClass, "storage-class", "", "The storage class of the volumes; by default that of the cluster.")
	flags.StringToStringVar(&s.StorageSizes, "storage-size", nil, "The size of a controller's volume, such as bundle-source-controller=50Gi; may be repeated.")
	flags.StringVar(&s.Selector, "watch-label-selector", "", "Look only after objects whose labels match.")
	flags.BoolVar(&o.policies, "network-policies", true, "Install the NetworkPolicies of the controllers.")
	flags.BoolVar(&s.AuthenticatedArtifacts, "authenticated-artifacts", false, "Have the artifact server ask for tokens; Flux cannot load artifacts then.")
	flags.StringSliceVar(&s.TenantNamespaces, "tenant-namespace", nil, "Let the controllers act as ServiceAccounts and read Secrets in this namespace only, instead of in all; may be repeated.")
	flags.BoolVar(&o.export, "export", false, "Print the manifests, and ask no cluster.")
	flags.BoolVar(&o.version, "version", false, "Print what this program embeds, and ask no cluster.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only list what would change, as the API server sees it.")
	flags.BoolVar(&o.downgrade, "allow-downgrade", false, "Install an older version, although fields of resources may be lost.")
	flags.BoolVar(&o.wait, "wait", true, "Wait until the controllers run.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait.")
	a.completeFlag(cmd, "system-namespace", a.completeNamespaces)
	a.completeFlag(cmd, "tenant-namespace", a.completeNamespaces)
	a.completeFlag(cmd, "image", fixed(install.SourceController+"=", install.DeploymentController+"="))
	a.completeFlag(cmd, "storage-size", fixed(install.SourceController+"=", install.DeploymentController+"="))
}

// chosen are the options of an installation: what the command line says, else what was chosen before.
func (a *app) chosen(o installOptions, before install.Options) install.Options {
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
	if !o.given("tag") && install.IsRelease(a.version.Version) {
		chosen.Tag = a.version.Version
	}
	return chosen
}

// exportManifests prints the manifests.
func (a *app) exportManifests(o installOptions) error {
	chosen := a.chosen(o, install.Options{})
	objects, err := install.Manifests(chosen)
	if err != nil {
		return err
	}
	if chosen.HasPlaceholders() {
		fmt.Fprintf(a.streams.ErrOut, "%s the images are examples that nobody publishes: give --registry.\n", styleFor(a.streams.ErrOut).paint(yellow, "Warning:"))
	}
	return writeManifests(a.streams.Out, objects)
}

// printEmbedded says what the program would install.
func (a *app) printEmbedded() error {
	chosen := a.chosen(installOptions{given: func(string) bool { return false }}, install.Options{})
	objects, err := install.Manifests(chosen)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.streams.Out, "Satchel %s, %s\n", a.version.Version, plural(len(objects), "object"))
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			fmt.Fprintf(a.streams.Out, "  %s %s\n", o.GetName(), strings.Join(servedVersions(o), ", "))
		}
	}
	for _, controller := range install.Controllers {
		fmt.Fprintf(a.streams.Out, "  %s %s\n", controller, chosen.Image(controller))
	}
	return nil
}

// install brings the cluster to what the program embeds.
func (a *app) install(ctx context.Context, o installOptions) error {
	i, err := a.newInstaller(ctx, o)
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
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, errTooLong)
	defer cancel()
	if err := i.carryOut(waiting); err != nil {
		return err
	}
	fmt.Fprintf(a.streams.Out, "%s\n", i.summary())
	return nil
}
