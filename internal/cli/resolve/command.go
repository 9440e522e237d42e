// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/catalogs"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// options are the flags of the command.
type options struct {
	version       string
	channels      []string
	catalogs      catalogs.Flags
	installed     string
	upgradePolicy string
	downgrade     string
	files         []string
	write         string
	dependencies  bool
	account       string
	accountGiven  bool
	output        printer.Output
}

// exitCodes is the part of the help about exit codes.
const exitCodes = `Exit codes:

    0    resolved; the BundleDeployment of -f or of the cluster stays at its bundle, or has none yet
    1    resolved, and the BundleDeployment would go to another bundle
    2    nothing can be chosen, or failed: wrong use, not found, no access
    130  interrupted by Ctrl-C`

// help is the help of the command.
const help = `Chooses a bundle of a package from file-based catalogs (FBC) by the rules of OLM v1: the newest version in the range and
the channels that is not deprecated, from the catalog with the highest priority. With --installed, the bundle must be a
successor of the installed one in the upgrade graph (replaces, skips, skipRange).

` + catalogs.Help + `

-f takes the manifest of a BundleDeployment, validates it by the CRD, and resolves its spec.catalog: the package,
version, channels, upgrade policy and downgrade are those of the manifest, and catalogs are those that it names.
Upgrades start from the bundle of its lock, or else from spec.catalog.installed. deployment/NAME is a BundleDeployment
of the cluster; upgrades start from what its status says is installed. --installed takes precedence over both.

The text output shows how many bundles of each catalog were left after each filter, deprecations, and why a newer bundle
was not chosen. With -o json and -o yaml the output has the fields bundle, version, image and catalog.

If there is no bundle to choose, or if several catalogs of the same priority offer one, the first line of standard error
is the message of OLM v1. The next lines show the filters, the nearest bundle, and what to change. The same version with
the same image digest in several catalogs is not ambiguous, other than in OLM v1: the first catalog by name is used.

--with-dependencies also resolves the packages and kinds that the bundle requires (olm.package.required,
olm.gvk.required, olm.constraint), and what those require, up to 50 packages. The bundles are listed in the order of
their installation. With catalogs of the cluster, a kind that it serves and a package that a BundleDeployment of the
namespace has installed need no further bundle. -o yaml prints BundleDeployments for a review, each with dependsOn and
one exact version; nothing is installed. With -f and deployment/NAME, that BundleDeployment is printed with its spec and
the defaults of the CRD, without its lock, and the further ones have its ServiceAccount, unless --service-account names
another one.

` + exitCodes

// Command returns the command resolve.
func Command(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "resolve PACKAGE | resolve -f FILE [NAME] | resolve deployment/NAME",
		GroupID: kit.GroupPreview,
		Short:   "Show which bundle of a package a version range resolves to",
		Long:    help,
		Example: a.Example(`
# The newest version
satchel resolve argocd-operator --catalog community=./catalog

# From the catalogs that the namespace sees
satchel resolve argocd-operator -n demo

# In a range and a channel
satchel resolve argocd-operator --version ">=0.11 <0.12" --channel alpha --catalog community=./catalog

# The next upgrade of what is installed
satchel resolve argocd-operator --installed argocd-operator.v0.10.0@0.10.0 --catalog community=./catalog

# What does this manifest resolve to? Exits with 1 if its lock has another bundle
satchel resolve -f deploy/argocd.yaml --catalog community=./catalog

# The package with everything that it requires, as manifests
satchel resolve argocd-operator --with-dependencies --catalog community=./catalog -o yaml

# What else does a BundleDeployment in Git need?
satchel resolve -f deploy/argocd.yaml --with-dependencies --catalog community=./catalog -o yaml

# Upgrade the lock of a BundleDeployment in Git
satchel resolve -f deploy/argocd.yaml --write deploy/argocd.yaml --catalog community=./catalog

# Is there an upgrade for what is installed in the cluster?
satchel resolve deployment/argocd-operator -n demo

# As JSON, from a catalog of your own before a public one
satchel resolve argocd-operator -o json --catalog own=./own.yaml,priority=10 --catalog community=./catalog`),
		ValidArgsFunction: complete(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(a, cmd, args) },
	}
	o.flags(a, cmd)
	return cmd
}

// run checks the arguments and flags, reads the question, and answers it.
func (o *options) run(a *kit.App, cmd *cobra.Command, args []string) error {
	read, err := o.reader(cmd, args)
	if err != nil {
		return err
	}
	if err := o.checkDependencies(cmd); err != nil {
		return err
	}
	if err := o.catalogs.Parse(cmd); err != nil {
		return err
	}
	asked, err := read(cmd.Context(), a)
	if err != nil {
		return err
	}
	if o.dependencies {
		return o.resolveAll(cmd.Context(), a, asked)
	}
	return o.resolve(cmd.Context(), a, asked)
}

func (o *options) flags(a *kit.App, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.version, "version", "", "Range of versions, such as \">=1.2 <2\" or 1.2.x; empty for all, prereleases included.")
	f.StringSliceVar(&o.channels, "channel", nil, "Channel that bundles and upgrade edges are taken from; may be repeated. All bundles if it is not given.")
	o.catalogs.Bind(a, cmd)
	manifests.Flag(cmd, &o.files, "Its spec.catalog is resolved.")
	f.StringVar(&o.write, "write", "", "File with a BundleDeployment or a BundleSource: the answer is written into the lock of the former, or the image of the latter.")
	_ = cmd.MarkFlagFilename("write", "yaml", "yml", "json") // it only fails for a flag that does not exist
	f.BoolVar(&o.dependencies, "with-dependencies", false, "Resolve also what the bundle requires.")
	f.StringVar(&o.account, "service-account", "installer", "With --with-dependencies and -o yaml: ServiceAccount of the BundleDeployments.")
	f.StringVar(&o.installed, "installed", "", "Installed bundle as BUNDLE@VERSION, from which upgrade edges are counted.")
	o.upgradePolicy, o.downgrade = string(resolver.CatalogProvided), string(resolver.DowngradeRefuse)
	a.EnumFlag(cmd, &o.upgradePolicy, "upgrade-policy", "", "Whether upgrades follow the edges of the catalog, or need none.",
		string(resolver.CatalogProvided), string(resolver.SelfCertified))
	a.EnumFlag(cmd, &o.downgrade, "downgrade", "", "Whether SelfCertified may choose a lower version than the installed one.",
		string(resolver.DowngradeRefuse), string(resolver.DowngradeAllow))
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
}

// complete completes deployment/NAME. Packages are not completed: reading a large catalog takes seconds.
func complete(a *kit.App) kit.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		prefix := kit.Deployments.Word + "/"
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if !strings.HasPrefix(begun, prefix) {
			return []string{prefix}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		names, directive := a.CompleteOne(kit.Deployments)(cmd, args, begun)
		for i := range names {
			names[i] = prefix + names[i]
		}
		return names, directive
	}
}

// parseInstalled reads the value of --installed. What is no version is for the resolver to refuse.
func parseInstalled(value string) (*resolver.Installed, error) {
	if value == "" {
		return nil, nil //nolint:nilnil // nothing is installed
	}
	bundle, version, found := strings.Cut(value, "@")
	if !found || bundle == "" {
		return nil, catalogs.Usage("installed", value, "BUNDLE@VERSION, such as argocd-operator.v0.10.0@0.10.0")
	}
	return &resolver.Installed{Bundle: bundle, Version: version}, nil
}
