// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/migrate/internal/translate"
)

// manifestsOptions are the flags of manifests.
type manifestsOptions struct {
	translate.Options

	images     []string
	cluster    bool
	everywhere bool
	output     printer.Output
}

// Command returns the command manifests.
func Command(a *kit.App) *cobra.Command {
	var o manifestsOptions
	cmd := &cobra.Command{
		Use:   "manifests [FILE|FOLDER|-]...",
		Short: "Translate manifests of RukPak and OLM into Satchel's",
		Long: `Reads manifests of RukPak and the Operator Lifecycle Manager from files, folders or standard input, or with --cluster
from the cluster, and writes equivalent objects of Satchel as YAML. Supported are

    core.rukpak.io              BundleDeployment (v1alpha1, v1alpha2), Bundle (v1alpha1)
    operators.coreos.com        Subscription (v1alpha1), with the OperatorGroup, InstallPlan and ClusterServiceVersion
                                that belong to it; CatalogSource (v1alpha1)
    olm.operatorframework.io    ClusterExtension (v1, v1alpha1), with its revisions; ClusterCatalog (v1)
    config.openshift.io         ImageDigestMirrorSet, ImageTagMirrorSet (v1)
    operator.openshift.io       ImageContentSourcePolicy (v1alpha1)
    registries.conf             the mirrors of CRI-O and Podman, in files that end in .conf

Comments say where each object comes from, what has no counterpart, and how its ServiceAccount gets its permissions.
Unknown fields are named in a comment. If an object cannot be translated, it is reported with file and document, and
nothing is written. Nothing is installed, no bundle is fetched, and without --cluster only files are read.

Bundles come from catalogs afterwards (spec.catalog). The adoption upgrades nothing: the image in the InstallPlan of a
Subscription, or in the revisions and conditions of a ClusterExtension, is the lock; without it the version is fixed.
With --image, the BundleDeployment has that image in spec.source, and its spec.catalog is in a comment.

The command adopt adopts the objects that are installed already, without a restart.

` + kit.ExitCodes,
		Example: a.Example(`
# Translate a manifest
kubectl satchel-migrate manifests subscription.yaml --image my-operator=quay.io/org/my-operator-bundle:v1.2.3

# Translate everything that the Operator Lifecycle Manager runs in a namespace
kubectl satchel-migrate manifests --cluster -n operators > satchel.yaml

# Translate objects of RukPak, which have no namespaces
kubectl get bundledeployments.core.rukpak.io -o yaml |
  kubectl satchel-migrate manifests - --install-namespace my-operator`),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml", "json", "conf"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return translateAll(cmd.Context(), a, o, args)
		},
	}
	a.OutputFlag(cmd, &o.output, printer.OutputYAML, printer.OutputJSON)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.images, "image", nil, "Image of the bundle of an object, as NAME=IMAGE or NAMESPACE/NAME=IMAGE; may be repeated.")
	flags.StringVar(&o.InstallNamespace, "install-namespace", "", "Install namespace of bundles for which the manifests name none.")
	flags.StringVar(&o.CatalogNamespace, "catalog-namespace", "", "Namespace of the counterparts of cluster-scoped catalogs and mirrors; without it, that of --namespace or "+translate.DefaultCatalogNamespace+".")
	flags.StringVar(&o.ServiceAccount, "service-account", "installer", "ServiceAccount that the controller impersonates, if the manifests name none.")
	flags.BoolVar(&o.cluster, "cluster", false, "Read objects from the cluster: those of the namespace, and cluster-scoped ones.")
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "With --cluster: read the objects of all namespaces.")
	a.CompleteFlag(cmd, "install-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "catalog-namespace", a.CompleteNamespaces)
	return cmd
}

// check reads the flags.
func (o *manifestsOptions) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && !o.cluster:
		return kit.UsageError(cmd, "manifests needs files, folders, - for standard input, or --cluster")
	case o.everywhere && !o.cluster:
		return kit.UsageError(cmd, "-A is about a cluster: add --cluster, or leave it out")
	case repeated(args, "-"):
		return kit.UsageError(cmd, "standard input can be read once")
	}
	if given := cmd.Flag("namespace"); given.Changed {
		o.Namespace = given.Value.String()
	}
	o.Images = map[string]string{}
	for _, pair := range o.images {
		of, image, found := strings.Cut(pair, "=")
		if !found || of == "" || image == "" {
			return kit.UsageError(cmd, "--image %s is not NAME=IMAGE", pair)
		}
		if _, err := name.ParseReference(image, name.WeakValidation); err != nil {
			return kit.UsageError(cmd, "--image %s: %q is not an image reference such as quay.io/org/bundle:v1.2.3", pair, image)
		}
		if _, again := o.Images[of]; again {
			return kit.UsageError(cmd, "--image is given twice for %s", of)
		}
		o.Images[of] = image
	}
	return nil
}

// repeated tells whether a word is there twice.
func repeated(words []string, word string) bool {
	count := 0
	for _, w := range words {
		if w == word {
			count++
		}
	}
	return count > 1
}

// translateAll translates what the arguments and the cluster hold.
func translateAll(ctx context.Context, a *kit.App, o manifestsOptions, args []string) error {
	manifests, err := readManifests(a, args)
	if err != nil {
		return migrationRefused(err)
	}
	if o.cluster {
		live, err := installedByOthers(ctx, a, o.everywhere)
		if err != nil {
			return err
		}
		manifests = append(manifests, live...)
	}
	result, err := translate.Migrate(manifests, o.Options)
	if err != nil {
		return migrationRefused(err)
	}
	noteIdle(a, result.Idle)
	if len(result.Items) == 0 {
		fmt.Fprintln(a.Streams.ErrOut, "Nothing to migrate was found.")
		return nil
	}
	return printMigration(a, o.output, result)
}

// migrationRefused lists what keeps manifests from being migrated.
func migrationRefused(err error) error {
	var problems *manifest.Error
	if !errors.As(err, &problems) {
		return err
	}
	lines := []string{"nothing is migrated, " + view.Plural(len(problems.Problems), "problem") + ":"}
	for _, p := range problems.Problems[:min(len(problems.Problems), kit.MostListed)] {
		p.Rule = ""
		lines = append(lines, "  - "+view.Inline(p.String()))
	}
	if more := len(problems.Problems) - kit.MostListed; more > 0 {
		lines = append(lines, fmt.Sprintf("  - and %d more", more))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// noteIdle names the objects that are not translated.
func noteIdle(a *kit.App, idle []translate.Idle) {
	lines := make([]string, 0, len(idle))
	for _, object := range idle {
		lines = append(lines, "not translated: "+object.From+": "+object.Why)
	}
	a.Note(lines)
}
