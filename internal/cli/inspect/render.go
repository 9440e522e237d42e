// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/view"
)

// renderOptions are the flags of render.
type renderOptions struct {
	bundle.ConversionOptions

	hooks bool
}

// renderHelp is the help of the command render.
const renderHelp = `Reads a bundle from a folder or from an image and prints the manifests that a BundleDeployment would apply, as a YAML
stream in a stable order. No cluster is needed. A path that exists on the disk is read as a folder; anything else is an
image, or with --helm-repository the name of a chart. Standard error has everything else: what was read, warnings, and,
when the bundle is refused, all problems at once.

--config takes a file with the contents of spec.registryV1 of the BundleDeployment, such as:

    watchNamespaces: [shop, billing]
    certificateProvider: cert-manager
    deploymentConfig:
      tolerations:
      - {key: dedicated, value: operators, effect: NoSchedule}

Flags take precedence over the file. A chart gets the values of --values and --set, in that order, and the capabilities of
--kube-version and --api-versions; the command plan uses those of the cluster. Certificates of webhooks are self-signed by
default: the controller issues them and their caBundle, so these are not printed, and named on standard error.

-f takes the manifest of a BundleDeployment, validates it by the CRD, and prints what it installs: all of its fields
count, and its source is fetched with its verification, unless a folder or an image is given in its place. The
BundleSource, the Secrets and the ConfigMaps that it refers to are other documents or files of -f. A registry for which
they have no login gets your own, as with docker pull.

Hooks come after the objects, each with a comment that says when it runs. The controller runs them at these events only,
so use --hooks=false for what you apply yourself.

`

// RenderCommand returns the command render.
func RenderCommand(a *kit.App) *cobra.Command {
	var o renderOptions
	cmd := &cobra.Command{
		Use:     "render PATH|IMAGE|CHART --install-namespace NS | render -f FILE [PATH|IMAGE]",
		GroupID: kit.GroupPreview,
		Short:   "Print the manifests that a bundle installs, without a cluster",
		Long:    renderHelp + kit.ExitCodes,
		Example: a.Example(`
# What would this folder install?
satchel render ./bundle --install-namespace demo

# What would change in the cluster? (needs permissions in the cluster)
satchel render ./bundle --install-namespace demo --hooks=false 2>/dev/null | kubectl diff -f -

# What does this manifest install?
satchel render -f deploy/bundledeployment.yaml

# The same from the working copy of the bundle, in place of its source
satchel render -f deploy/ ./bundle

# An operator's bundle from a registry, watching two namespaces
satchel render quay.io/org/operator-bundle:v1.2.3 --install-namespace operators \
  --watch-namespace shop --watch-namespace billing

# A chart, with values
satchel render ./chart --install-namespace shop --release-name shop --values prod.yaml --set image.tag=v2

# A chart of a Helm repository
satchel render ingress --helm-repository https://charts.example.org/stable --install-namespace shop

# From a registry on this machine, without TLS
satchel render localhost:5000/bundle:dev --install-namespace demo`),
		RunE: func(cmd *cobra.Command, args []string) error { return runRender(a, cmd, o, args) },
	}
	bundle.ConversionFlags(a, cmd, &o.ConversionOptions, "Namespace of the objects that name none, and of the operator. Required without -f.")
	bundle.NameFlag(cmd, &o.ConversionOptions)
	cmd.Flags().BoolVar(&o.hooks, "hooks", true, "Print the hooks of a bundle, after its objects.")
	return cmd
}

func runRender(a *kit.App, cmd *cobra.Command, o renderOptions, args []string) error {
	what, err := o.OneBundle(cmd, args)
	if err != nil {
		return err
	}
	if o.InstallNamespace == "" && len(o.Manifests) == 0 {
		return kit.UsageError(cmd, "render needs --install-namespace, the namespace of objects that name none, or -f with a BundleDeployment")
	}
	return render(cmd.Context(), a, o, what)
}

// render writes the manifests of a bundle.
func render(ctx context.Context, a *kit.App, o renderOptions, what string) error {
	result, err := bundle.ConvertBundle(ctx, a, o.ConversionOptions, what)
	if err != nil {
		return err
	}
	for _, line := range promises(result.Certificates) {
		fmt.Fprintln(a.Streams.ErrOut, view.Inline(line))
	}
	if !o.hooks && len(result.Hooks) > 0 {
		fmt.Fprintf(a.Streams.ErrOut, "Not shown: %s, because of --hooks=false.\n", view.Plural(len(result.Hooks), "hook"))
	}
	if err := printer.WriteManifests(a.Streams.Out, result.Objects); err != nil || !o.hooks {
		return err
	}
	return writeHooks(a, result.Hooks)
}

// writeHooks writes the hooks after the objects, each below a comment that says when it runs.
func writeHooks(a *kit.App, hooks []convert.Hook) error {
	for _, hook := range hooks {
		text, err := printer.YamlText(hook.Object.Object)
		if err != nil {
			return fmt.Errorf("writing the hook %s %s as YAML: %w", hook.Object.GetKind(), hook.Object.GetName(), err)
		}
		when := fmt.Sprintf("# Hook: runs at %s, weight %d; deleted: %s", strings.Join(hook.Events, ", "), hook.Weight, strings.Join(hook.DeletePolicies, ", "))
		if _, err := fmt.Fprintf(a.Streams.Out, "---\n%s\n%s", when, text); err != nil {
			return fmt.Errorf("writing the manifests: %w", err)
		}
	}
	return nil
}

// promises name what the controller adds to the objects when it applies them.
func promises(certificates []convert.Certificate) []string {
	if len(certificates) == 0 {
		return nil
	}
	var lines []string
	for _, c := range certificates {
		lines = append(lines, fmt.Sprintf("Not shown: the Secret %s/%s, a certificate for %s that the controller issues and renews.",
			c.Namespace, c.Secret, c.DNSNames[0]))
	}
	return append(lines, "Not shown: "+authorityText()+".",
		"Not shown: the caBundle of the objects annotated satchel.dev/inject-ca-from, which the controller fills in when it applies them.")
}

// authorityText names the Secret of the certificate authority, which is named after the BundleDeployment.
func authorityText() string {
	return fmt.Sprintf("the Secret %s in the namespace of the BundleDeployment <name>, the CA that signs them",
		certificate.AuthorityID(inventory.Owner{Name: "<name>"}).Name)
}
