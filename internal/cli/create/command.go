// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/view"
)

const createExitCodes = `Exit codes:

    0    created (with --export: printed)
    2    failed: wrong use, it exists already, no access
    130  interrupted by Ctrl-C`

// Command returns the command create.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create deployment|source NAME",
		GroupID: kit.GroupAuthor,
		Short:   "Create a BundleDeployment or a BundleSource from flags, or print its manifest",
		Long: `Creates an object from flags, for a first try; with --export it prints the manifest, to be committed to Git. Both are
validated by the CRD first.

` + createExitCodes,
		Example: a.Example(`
# The manifest of a bundle in an image
satchel create deployment podinfo --image ghcr.io/org/podinfo-bundle:v1.2.3 --export > podinfo.yaml`),
		ValidArgsFunction: cobra.NoFileCompletions, // the commands below are completed
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.UsageError(cmd, "create makes a deployment or a source, and not %q: write create deployment NAME or create source NAME", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(deploymentCommand(a), sourceCommand(a))
	return cmd
}

// common are the flags of both commands.
type common struct {
	export bool
	labels []string
}

func (o *common) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.export, "export", false, "Print the manifest instead of creating the object.")
	cmd.Flags().StringArrayVar(&o.labels, "label", nil, "Label of the object, as key=value; may be repeated.")
}

func sourceCommand(a *kit.App) *cobra.Command {
	var o common
	var from sourceFlags
	cmd := &cobra.Command{
		Use:   "source NAME",
		Short: "Create a BundleSource, or print its manifest",
		Long: `Creates a BundleSource with one source. Several BundleDeployments can install from it (create deployment --source NAME).
Signatures, several sources, and other fields are added to the printed manifest.

` + createExitCodes,
		Example: a.Example(`
# The newest release of a repository, once an hour
satchel create source podinfo --git https://github.com/org/podinfo --version 6.x --source-interval 1h

# A chart of a Helm repository, as a manifest
satchel create source web --helm-repository https://charts.example.org --chart web --version 1.x --export`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneName(cmd, args)
			if err != nil {
				return err
			}
			spec, err := from.spec(cmd)
			if err != nil {
				return err
			}
			return o.create(cmd.Context(), a, name, &v1alpha1.BundleSource{Spec: *spec}, v1alpha1.BundleSourceKind)
		},
	}
	o.bind(cmd)
	from.bind(cmd)
	return cmd
}

// deploymentFlags are those of create deployment, beside its source.
type deploymentFlags struct {
	common

	from                   sourceFlags
	catalog                catalogFlags
	source                 string
	account                string
	path, format           string
	installNamespace       string
	createNamespace        bool
	watchNamespaces        []string
	releaseName            string
	valuesFiles, set, vals []string
	dependsOn              []string
	approval               string
	interval               time.Duration
}

func deploymentCommand(a *kit.App) *cobra.Command {
	var o deploymentFlags
	cmd := &cobra.Command{
		Use:   "deployment NAME",
		Short: "Create a BundleDeployment, or print its manifest",
		Long: `Creates a BundleDeployment that takes its bundle from --image, --git, --http, --helm-repository or --config-map, or from
another object with --source, or from BundleCatalogs with --package. The ServiceAccount has to exist; the command rbac
prints it with its permissions:

    satchel create deployment NAME ... --export > deploy/NAME.yaml
    satchel rbac -f deploy/NAME.yaml > permissions/NAME.yaml

Other fields are added to the printed manifest.

` + createExitCodes,
		Example: a.Example(`
# A bundle in an image, with a ServiceAccount of its own
satchel create deployment podinfo --image ghcr.io/org/podinfo-bundle:v1.2.3 --service-account podinfo-installer

# A chart of a Helm repository with values, as a manifest
satchel create deployment web --helm-repository https://charts.example.org --chart web --version 1.x \
  --values values.yaml --export > deploy/web.yaml

# A package of a BundleCatalog, with upgrades within 1.x
satchel create deployment shop --package shop --version 1.x --channel stable --export

# From a source of Flux in the same namespace
satchel create deployment web --source GitRepository/fleet --path web --export`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneName(cmd, args)
			if err != nil {
				return err
			}
			spec, err := o.spec(cmd, a)
			if err != nil {
				return err
			}
			return o.create(cmd.Context(), a, name, &v1alpha1.BundleDeployment{Spec: *spec}, v1alpha1.BundleDeploymentKind)
		},
	}
	o.bind(cmd)
	o.from.bind(cmd)
	o.deploymentFlags(a, cmd)
	cmd.Flag("version").Usage = strings.Replace(versionHelp, "or of the chart", "of the chart or of the package", 1)
	return cmd
}

func (o *deploymentFlags) deploymentFlags(a *kit.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.source, "source", "", "Existing source, as NAME of a BundleSource, or as KIND/NAME of one of Flux.")
	o.catalog.bind(flags)
	flags.StringVar(&o.account, "service-account", "installer", "ServiceAccount that installs the bundle.")
	flags.StringVar(&o.path, "path", "", "Folder of the artifact that holds the bundle.")
	a.EnumFlag(cmd, &o.format, "format", "", "Format of the bundle; detected when left out.",
		string(convert.PlainV0), string(convert.RegistryV1), string(convert.Helm), string(convert.Kustomize))
	flags.StringVar(&o.installNamespace, "install-namespace", "", "Namespace of the objects that name none; without it: that of the BundleDeployment.")
	flags.BoolVar(&o.createNamespace, "create-namespace", false, "Create the install namespace if it is missing.")
	flags.StringArrayVar(&o.watchNamespaces, "watch-namespace", nil, "Namespace that the operator of a registry+v1 bundle watches; may be repeated.")
	flags.StringVar(&o.releaseName, "release-name", "", "Name of the release of a chart; without it: that of the BundleDeployment.")
	flags.StringArrayVar(&o.vals, "values", nil, "File with values of a chart in YAML, or - for standard input; may be repeated. They are part of the manifest: no secrets.")
	flags.StringArrayVar(&o.set, "set", nil, "Value of a chart as path=value, over those of the files; may be repeated.")
	flags.StringArrayVar(&o.valuesFiles, "values-from", nil, "Secret or ConfigMap with values of a chart, as Secret/NAME or ConfigMap/NAME; may be repeated.")
	flags.StringArrayVar(&o.dependsOn, "depends-on", nil, "BundleDeployment that has to be Ready before; may be repeated.")
	a.EnumFlag(cmd, &o.approval, "approval", "", "Which plans wait for an approval; without it: Automatic, which is none.",
		string(v1alpha1.ApprovalAutomatic), string(v1alpha1.ApprovalOnEscalation), string(v1alpha1.ApprovalManual))
	flags.DurationVar(&o.interval, "interval", 0, "How often the objects are compared with the bundle at the latest; without it: 10m.")
	a.CompleteFlag(cmd, "install-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "watch-namespace", a.CompleteNamespaces)
}

// spec is that of the flags.
func (o *deploymentFlags) spec(cmd *cobra.Command, a *kit.App) (*v1alpha1.BundleDeploymentSpec, error) {
	spec := &v1alpha1.BundleDeploymentSpec{
		Path: o.path, Format: v1alpha1.Format(o.format), Target: v1alpha1.DeploymentTarget{Namespace: o.installNamespace, CreateNamespace: o.createNamespace},
		ServiceAccountName: o.account,
	}
	var err error
	if spec.Catalog, err = o.catalog.spec(cmd, o.from.version); err != nil {
		return nil, err
	}
	switch given := o.from.kinds(); {
	case spec.Catalog != nil && (o.source != "" || len(given) > 0):
		return nil, kit.UsageError(cmd, "--package takes the bundle from catalogs: use no source beside it")
	case spec.Catalog != nil:
	case o.source != "" && len(given) > 0:
		return nil, kit.UsageError(cmd, "--source names an existing source, and --%s a new one: use only one of the two", given[0])
	case o.source != "":
		spec.SourceRef, err = sourceRef(o.source)
	default:
		spec.Source, err = o.from.spec(cmd)
	}
	if err != nil {
		return nil, err
	}
	if len(o.watchNamespaces) > 0 {
		spec.RegistryV1 = &v1alpha1.RegistryV1Options{WatchNamespaces: o.watchNamespaces}
	}
	for _, name := range o.dependsOn {
		spec.DependsOn = append(spec.DependsOn, v1alpha1.Dependency{Name: name})
	}
	if o.approval != "" {
		spec.Approval = &v1alpha1.ApprovalOptions{Mode: v1alpha1.ApprovalMode(o.approval)}
	}
	if spec.Helm, err = o.helm(a); err != nil {
		return nil, err
	}
	return spec, setDuration(&spec.Interval, o.interval)
}

// helm are the options of a chart; nil where no flag is about charts.
func (o *deploymentFlags) helm(a *kit.App) (*v1alpha1.HelmOptions, error) {
	options := &v1alpha1.HelmOptions{ReleaseName: o.releaseName}
	for _, from := range o.valuesFiles {
		kind, name, found := strings.Cut(from, "/")
		if !found || kind != "Secret" && kind != "ConfigMap" {
			return nil, fmt.Errorf("--values-from %q is none of Secret/NAME and ConfigMap/NAME", from)
		}
		options.ValuesFrom = append(options.ValuesFrom, v1alpha1.ValuesReference{Kind: kind, Name: name})
	}
	values, err := bundle.ReadValues(o.vals, o.set, a.Streams.In)
	if err != nil {
		return nil, err
	}
	if len(values) > 0 {
		encoded, err := json.Marshal(values)
		if err != nil {
			return nil, fmt.Errorf("reading --values: %w", err)
		}
		options.Values = &apiextensionsv1.JSON{Raw: encoded}
	}
	if options.ReleaseName == "" && options.Values == nil && len(options.ValuesFrom) == 0 {
		return nil, nil //nolint:nilnil // there are none
	}
	return options, nil
}

// fluxSources are the versions of Flux's sources.
var fluxSources = map[string]string{
	"GitRepository": "source.toolkit.fluxcd.io/v1", "OCIRepository": "source.toolkit.fluxcd.io/v1", "Bucket": "source.toolkit.fluxcd.io/v1",
	"ExternalArtifact": "source.toolkit.fluxcd.io/v1",
}

// sourceRef reads --source.
func sourceRef(given string) (*v1alpha1.SourceReference, error) {
	kind, name, qualified := strings.Cut(given, "/")
	if !qualified {
		kind, name = v1alpha1.BundleSourceKind, given
	}
	switch {
	case name == "":
		return nil, fmt.Errorf("--source %q has no name", given)
	case kind == v1alpha1.BundleSourceKind:
		return &v1alpha1.SourceReference{Kind: kind, Name: name}, nil
	case fluxSources[kind] != "":
		return &v1alpha1.SourceReference{APIVersion: fluxSources[kind], Kind: kind, Name: name}, nil
	}
	return nil, fmt.Errorf("--source %q is of no kind that can be installed from: BundleSource, GitRepository, OCIRepository, Bucket, ExternalArtifact", given)
}

// oneName reads the arguments.
func oneName(cmd *cobra.Command, args []string) (string, error) {
	if len(args) != 1 || args[0] == "" {
		return "", kit.UsageError(cmd, "create %s needs one name, got %s", cmd.Name(), kit.Given(args))
	}
	return args[0], nil
}

// create validates an object, and prints or creates it.
func (o *common) create(ctx context.Context, a *kit.App, name string, object view.Object, kind string) error {
	plain, err := o.manifest(a, name, object, kind)
	if err != nil {
		return err
	}
	_, problems, err := manifests.Validate(ctx, plain)
	switch {
	case err != nil:
		return err
	case len(problems) > 0:
		return fmt.Errorf("%s %s would not be valid:\n  - %s", kind, name, strings.Join(problems, "\n  - "))
	case o.export:
		return printer.WriteManifests(a.Streams.Out, []*unstructured.Unstructured{plain})
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	err = c.Client.Create(ctx, plain, client.FieldOwner(kit.FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s %s/%s exists already: change its manifest, or edit it with kubectl edit", kind, plain.GetNamespace(), name)
	case err != nil:
		resource := map[string]kit.Kind{v1alpha1.BundleSourceKind: kit.Sources, v1alpha1.BundleDeploymentKind: kit.Deployments}[kind].Resource
		return &kit.AccessError{Verb: "create", Resource: resource, Namespace: plain.GetNamespace(), Err: err}
	}
	fmt.Fprintf(a.Streams.Out, "%s %s/%s: created\n", kind, plain.GetNamespace(), name)
	return nil
}

// manifest is the object as people write it: without a status and what a server fills in.
func (o *common) manifest(a *kit.App, name string, object view.Object, kind string) (*unstructured.Unstructured, error) {
	labels, err := o.readLabels()
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	object.SetName(name)
	object.SetNamespace(a.GivenNamespace())
	object.SetLabels(labels)
	plain, err := printer.PlainOf(object)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: plain}, nil
}

func (o *common) readLabels() (map[string]string, error) {
	labels := map[string]string{}
	for _, given := range o.labels {
		key, value, found := strings.Cut(given, "=")
		if !found || key == "" {
			return nil, errors.New("--label is key=value")
		}
		labels[key] = value
	}
	return labels, nil
}
