// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/view"
)

// Options are the flags of rbac.
type Options struct {
	bundle.ConversionOptions

	Deployment     string
	Named          bool   // the user named the deployment
	Namespace      string // of the BundleDeployment
	ServiceAccount string
	upgradeFrom    []string
	remote         bool
	only           string
	Definitions    bool // CRDs may be deleted
	keeps          bool // nothing is deleted
	Strict         bool // all permissions are limited to objects by name
	missing        bool // only what the ServiceAccount lacks is printed

	served servedKinds // of a cluster
}

// rbacHelp is the help without the exit codes.
const rbacHelp = `Prints, as a YAML stream, the ServiceAccount that a BundleDeployment names in spec.serviceAccountName, with the
permissions it needs. With the NAME of a BundleDeployment it reads its spec, its inventory, the applied revision and
the current one of its source from the cluster, and prints what all of them need together: apply it before an upgrade,
and again after it to take away what only the former version needed. With -f, or with a folder or an image and
--install-namespace, it reads the bundle as render does, and no cluster is needed.

There are three parts, and each object has the label of its part:

    satchel.dev/rbac: bootstrap    what an administrator creates first: the namespaces and the ServiceAccount
    satchel.dev/rbac: required     without any of these permissions an install, an upgrade or a removal fails
    satchel.dev/rbac: recommended  list and watch: one request a kind instead of one an object, and drift is corrected at
                                   once instead of at spec.interval; the others let messages name the causes of failures,
                                   and let custom resources be rewritten before their conversion webhook is removed

Objects get other names in later versions: generated ConfigMaps have a hash in their name, and so have the roles of
operators. So that this needs no new permissions, those for namespaced kinds include all objects of the kind in the
namespace. Limited to the objects of the bundle by name are, always: cluster-scoped kinds; Secrets, Roles,
RoleBindings and ServiceAccounts, except to create them; and everything in namespaces of Kubernetes (kube-*) and in
those that the bundle creates. --strict limits all permissions to objects by name: then each new name needs new
permissions. Where any is missing, plan and status print it; NAME --missing prints it alone.

Kubernetes only lets subjects grant permissions that they have, so the required permissions include everything that
the bundle's own Roles grant, and the verb "bind" on roles that the bundle refers to and does not contain. Review them
before you apply them: they are what you trust the bundle with. To list Secrets is not even recommended, because it
includes reading all of them.

An upgrade deletes the objects that the new version does not have, and needs the permissions for that: NAME includes
them; for a folder or an image, --upgrade-from names the installed version. The namespaces are created here, not by
spec.target.createNamespace, which would need permissions in all namespaces.

`

// Command returns the command rbac.
func Command(a *kit.App) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:     "rbac NAME | rbac -f FILE [PATH|IMAGE] | rbac PATH|IMAGE|CHART --install-namespace NS",
		GroupID: kit.GroupPreview,
		Short:   "Print the RBAC that a ServiceAccount needs to install, upgrade and remove a bundle",
		Long:    rbacHelp + kit.ExitCodes,
		Example: a.Example(`
# What do I trust this operator with?
satchel rbac quay.io/org/operator-bundle:v1.2.3 --install-namespace operators --only required

# Let the ServiceAccount "installer" of the namespace platform install it
satchel rbac ./bundle --install-namespace operators --namespace platform --name my-operator | kubectl apply -f -

# What the manifest that is committed needs, its values and overlays included
satchel rbac -f deploy/bundledeployment.yaml > permissions/rbac.yaml

# Everything that an installed bundle and its next revision need
satchel rbac my-operator -n platform | kubectl apply -f -

# Only what the ServiceAccount lacks for the next revision
satchel rbac my-operator -n platform --missing | kubectl apply -f -`),
		ValidArgsFunction: deploymentsAndFiles(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := cmd.Flag("namespace"); given.Changed {
				o.Namespace = given.Value.String()
			}
			if len(o.Manifests) > 0 {
				return ofManifest(cmd, a, o, args)
			}
			if o.InstallNamespace == "" && namesDeployment(args) {
				return ofDeployment(cmd, a, o, args)
			}
			switch {
			case o.missing:
				return kit.UsageError(cmd, "--missing needs the name of a BundleDeployment")
			case len(args) != 1:
				return kit.UsageError(cmd, "rbac needs a BundleDeployment, a folder, an image or a chart, got %s", kit.Given(args))
			case o.InstallNamespace == "":
				return kit.UsageError(cmd, "for a folder or an image, rbac needs --install-namespace, the namespace of objects that name none")
			}
			return rbac(cmd.Context(), a, o, args[0])
		},
	}
	rbacFlags(a, cmd, &o)
	return cmd
}

// deploymentsAndFiles completes names of BundleDeployments, and files where there are none.
func deploymentsAndFiles(a *kit.App) kit.Completer {
	names := a.CompleteOne(kit.Deployments)
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		found, _ := names(cmd, args, begun)
		return found, cobra.ShellCompDirectiveDefault
	}
}

// rbacFlags adds the flags of rbac.
func rbacFlags(a *kit.App, cmd *cobra.Command, o *Options) {
	bundle.ConversionFlags(a, cmd, &o.ConversionOptions, "Namespace of the objects that name none, and of the operator. Required.")
	flags := cmd.Flags()
	flags.StringVar(&o.Deployment, "name", "", "Name of the BundleDeployment, also where the files of -f have several; without it: that of the package, or else the last part of PATH or IMAGE. "+
		"Its namespace is given with --namespace; without it: the install namespace.")
	flags.StringVar(&o.ServiceAccount, "service-account", "installer", "ServiceAccount that installs the bundle, in the namespace of the BundleDeployment.")
	flags.StringArrayVar(&o.upgradeFrom, "upgrade-from", nil,
		"Folder or image of a version that may be installed: adds the permissions to delete objects that only it has; may be repeated.")
	flags.BoolVar(&o.keeps, "keep-objects", false, "With spec.prune.enabled: false and spec.deletionPolicy: Orphan: leaves out the permissions to delete, which are not needed then; not with spec.apply.recreate: OnImmutableChange.")
	flags.BoolVar(&o.Definitions, "delete-crds", false, "With spec.apply.crds.deletionPolicy: Delete: adds the permissions to delete CRDs and to list their resources.")
	flags.BoolVar(&o.Strict, "strict", false, "Limit all permissions to objects by name, so that an object with another name in the next version needs new permissions.")
	flags.BoolVar(&o.missing, "missing", false, "With NAME: print only what the ServiceAccount lacks for the current revision of the source, as roles beside those that it has.")
	flags.BoolVar(&o.remote, "remote", false, "Print the permissions for the cluster of spec.target: adds get on the namespace kube-system, which identifies it.")
	a.EnumFlag(cmd, &o.only, "only", "", "Print one part only.", string(rights.Bootstrap), string(rights.Required), string(rights.Recommended))
}

// BaseName is the last part of a folder's or an image's name.
func BaseName(what string) string {
	if ref, err := name.ParseReference(what, name.WeakValidation); err == nil && !kit.LooksLikePath(what) {
		what = ref.Context().RepositoryStr()
	}
	return path.Base(path.Clean(what))
}

// rbac writes the RBAC that a bundle needs.
func rbac(ctx context.Context, a *kit.App, o Options, what string) error {
	if err := o.Read(ctx, a); err != nil {
		return err
	}
	result, err := bundle.ConvertBundle(ctx, a, o.ConversionOptions, what)
	if err != nil {
		return err
	}
	o.Named = o.Deployment != ""
	o.Deployment = cmp.Or(o.Deployment, result.Package.Name, BaseName(what))
	var earlier []convert.Result
	former := o.ConversionOptions
	former.HelmRepository, former.ChartVersion = "", ""
	for _, version := range o.upgradeFrom {
		before, err := bundle.ConvertBundle(ctx, a, former, version)
		if err != nil {
			return fmt.Errorf("reading the version to upgrade from, %s: %w", view.Printable(version), err)
		}
		earlier = append(earlier, before)
	}
	request, guesses := o.Request(result, earlier...)
	if declared := o.Declared(); declared != nil {
		request.Pruning = spec.Pruning(&declared.Deployment.Spec)
		if !o.remote {
			request.Inputs = spec.InputIDs(declared.Deployment)
		}
	}
	a.Note(o.assumed(result))
	return printRBAC(a, o, request, guesses)
}

// printRBAC writes the parts of the RBAC, with notes for the administrator who grants it.
func printRBAC(a *kit.App, o Options, request rights.Request, guesses Guesses) error {
	parts, err := rights.Manifests(request)
	if err != nil {
		return fmt.Errorf("the permissions cannot be determined: %w", err)
	}
	a.Note(guesses.Notes())
	a.Note(request.Notes())
	return writeParts(a, parts, o.only, guesses.Comments())
}

// Request is the input of the computation of permissions, and the kinds that had to be guessed.
func (o Options) Request(result convert.Result, earlier ...convert.Result) (rights.Request, Guesses) {
	applied := o.applied(result)
	request := rights.Request{
		Deployment:       o.owner(),
		ServiceAccount:   o.ServiceAccount,
		InstallNamespace: o.InstallNamespace,
		Namespaces:       result.RequiredNamespaces,
		Remote:           o.remote,
		Objects:          applied.objects,
		Hooks:            applied.hooks,
		Pruning:          pruning.Policy{Definitions: o.Definitions, Disabled: o.keeps, Orphan: o.keeps},
		Strict:           o.Strict,
	}
	guessed := applied.guessed
	for _, version := range earlier {
		gone := o.applied(version)
		request.Gone = append(request.Gone, gone.objects...)
		guessed = append(guessed, gone.guessed...)
	}
	return request, guessed.unique()
}

// owner is the BundleDeployment.
func (o Options) owner() inventory.Owner {
	return inventory.Owner{Namespace: cmp.Or(o.Namespace, o.InstallNamespace), Name: o.Deployment}
}

// assumed says which name of the deployment was assumed, where that matters.
func (o Options) assumed(result convert.Result) []string {
	if o.Named || len(result.Certificates) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the Secret of the certificates' CA is named after the BundleDeployment, which is taken to be %s: name it with --name", o.Deployment)}
}

// headings are the comments above each part.
var headings = map[rights.Part]string{
	rights.Bootstrap:   "what an administrator creates first",
	rights.Required:    "without any of these permissions an install, an upgrade or a removal fails",
	rights.Recommended: "list: one request a kind instead of one an object; others: messages name causes; see the help",
}

// writeParts writes one part or all of them, each under a heading.
func writeParts(a *kit.App, parts map[rights.Part][]*unstructured.Unstructured, only string, comments []string) error {
	text, err := PartsText(parts, only, comments)
	if err != nil {
		return err
	}
	if _, err := a.Streams.Out.Write(text); err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	return nil
}

// PartsText is one part or all of them as YAML. It is complete or fails, so that no incomplete RBAC is printed.
func PartsText(parts map[rights.Part][]*unstructured.Unstructured, only string, comments []string) ([]byte, error) {
	var out bytes.Buffer
	for _, part := range rights.Parts() {
		if only != "" && only != string(part) || len(parts[part]) == 0 {
			continue
		}
		fmt.Fprintf(&out, "# %s: %s\n", part, headings[part])
		if part != rights.Bootstrap {
			for _, line := range comments {
				fmt.Fprintf(&out, "# %s\n", line)
			}
		}
		if err := printer.WriteManifests(&out, parts[part]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
