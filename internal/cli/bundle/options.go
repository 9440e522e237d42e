// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/registryv1file"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/lint"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/view"
)

// OpenOptions name a bundle: the flags of all commands that read one.
type OpenOptions struct {
	Path, Format string
	Platform     string // of an image
	Insecure     bool   // an image's registry speaks plain HTTP
	Key          string // file of the public key that has to have signed an image
	// ImagePolicies are files with BundleImagePolicies, which decide from where images are fetched.
	ImagePolicies []string

	// only restricts what is unpacked of an image; nil for everything.
	only *image.Only

	HelmRepository string // the bundle is a chart of it; "" for a folder or an image
	ChartVersion   string // of that chart, or a range

	// Limits are those of the manifests; see LimitFlags.
	Limits convert.Limits
}

// ConversionOptions say what a bundle becomes: the flags of all commands that convert one.
type ConversionOptions struct {
	OpenOptions
	ChartOptions

	InstallNamespace    string
	WatchNamespaces     []string
	CertificateProvider string
	ConfigFile          string
	// Manifests are the files of -f, and DeclaredName that of the BundleDeployment in them; "" for the only one.
	Manifests    []string
	DeclaredName string

	config   v1alpha1.RegistryV1Options // of the file, see Read
	declared *Declared                  // of the files of -f, see Read
	read     bool
}

// Flags adds the flags that name a bundle.
func Flags(a *kit.App, cmd *cobra.Command, o *OpenOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.Path, "path", "", "Folder inside the folder or image that holds the bundle.")
	flags.StringVar(&o.Platform, "platform", "", "Platform of the image, as os/arch; without it: linux/amd64, or the only one.")
	flags.BoolVar(&o.Insecure, "insecure", false, "Speak plain HTTP with the image's registry, which is detected on loopback, or with a Helm repository at an http:// URL.")
	manifests.ImagePolicyFlag(cmd, &o.ImagePolicies)
	RepositoryFlags(cmd, o)
	a.EnumFlag(cmd, &o.Format, "format", "", "Format of the bundle; detected when left out.",
		string(convert.PlainV0), string(convert.RegistryV1), string(convert.Helm), string(convert.Kustomize))
	LimitFlags(cmd, &o.Limits)
}

// LimitFlags adds the flags of the controllers that bound what the manifests of a bundle may be.
func LimitFlags(cmd *cobra.Command, limits *convert.Limits) {
	*limits = convert.DefaultLimits()
	limits.BindFlags(cmd.Flags())
}

// ConversionFlags adds the flags that name a bundle and say what it becomes. installNamespace is the help of that flag.
func ConversionFlags(a *kit.App, cmd *cobra.Command, o *ConversionOptions, installNamespace string) {
	Flags(a, cmd, &o.OpenOptions)
	flags := cmd.Flags()
	flags.StringVar(&o.InstallNamespace, "install-namespace", "", installNamespace)
	flags.StringArrayVar(&o.WatchNamespaces, "watch-namespace", nil,
		"Namespace that the operator of a registry+v1 bundle watches; may be repeated. Without it: all, where the bundle supports that.")
	a.EnumFlag(cmd, &o.CertificateProvider, "certificate-provider", "",
		"What issues the certificates of a registry+v1 bundle's webhooks; without it: self-signed.",
		string(registryv1.SelfSigned), string(registryv1.CertManager), string(registryv1.ServiceCA))
	flags.StringVar(&o.ConfigFile, "config", "", "File with the contents of spec.registryV1 in YAML, or - for standard input. "+
		"--watch-namespace and --certificate-provider replace what it says.")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json") // it only fails for a flag that does not exist
	manifests.Flag(cmd, &o.Manifests, "Its spec counts, with the ConfigMaps, the Secrets and the BundleSource that are beside it; other flags take precedence.")
	chartFlags(a, cmd, &o.ChartOptions)
	a.CompleteFlag(cmd, "install-namespace", a.CompleteNamespaces)
	a.CompleteFlag(cmd, "watch-namespace", a.CompleteNamespaces)
}

// NameFlag adds --name, which chooses among several BundleDeployments of -f.
func NameFlag(cmd *cobra.Command, o *ConversionOptions) {
	cmd.Flags().StringVar(&o.DeclaredName, "name", "", "Name of the BundleDeployment, where the files of -f have several.")
}

// OneBundle returns the only argument of a command about a bundle; "" where the source of a BundleDeployment of -f is meant.
func (o *ConversionOptions) OneBundle(cmd *cobra.Command, args []string) (string, error) {
	declared := len(o.Manifests) > 0
	switch {
	case len(args) == 0 && o.HelmRepository != "":
		return "", kit.UsageError(cmd, "--helm-repository needs the name of a chart")
	case len(args) == 0 && declared:
		return "", o.check(cmd)
	case len(args) != 1:
		return "", kit.UsageError(cmd, "%s needs one folder or image, or -f with a BundleDeployment, got %s", cmd.Name(), kit.Given(args))
	case cmd.Flag("namespace").Changed && !declared:
		return "", kit.UsageError(cmd, "%s uses no cluster, so --namespace has no effect; the namespace of the operator is --install-namespace", cmd.Name())
	}
	return args[0], o.check(cmd)
}

// check refuses flags that have no effect together.
func (o *ConversionOptions) check(cmd *cobra.Command) error {
	switch {
	case o.ConfigFile != "" && len(o.Manifests) > 0:
		return kit.UsageError(cmd, "a BundleDeployment of -f has spec.registryV1, so --config has no effect: use only one of them")
	case o.DeclaredName != "" && len(o.Manifests) == 0:
		return kit.UsageError(cmd, "--name has no effect without -f")
	}
	return nil
}

// Read reads the files of -f, --config and --values, once: one of them may be standard input.
func (o *ConversionOptions) Read(ctx context.Context, a *kit.App) (err error) {
	if o.read {
		return nil
	}
	o.read = true
	inputs := slices.Concat([]string{o.ConfigFile}, o.Manifests, o.Files)
	if inputs = slices.DeleteFunc(inputs, func(file string) bool { return file != manifests.StandardInput }); len(inputs) > 1 {
		return errors.New("only one of -f, --config and --values can be standard input, and once: give the others as files")
	}
	if o.ConfigFile != "" {
		if o.config, err = registryv1file.Read(o.ConfigFile, a.Streams.In); err != nil {
			return err
		}
	}
	if len(o.Manifests) > 0 {
		if o.declared, err = ReadDeclared(ctx, a, o.Manifests, o.DeclaredName, a.GivenNamespace()); err != nil {
			return err
		}
		if err := o.declared.readInputs(); err != nil {
			return o.declared.scrub.Error(err)
		}
	}
	return o.ChartOptions.Read(a.Streams.In)
}

// Declared is the BundleDeployment of -f; nil without one. Read comes before.
func (o *ConversionOptions) Declared() *Declared { return o.declared }

// Convert is how the bundle is converted: by the file, and by the flags where they are given.
func (o *ConversionOptions) Convert() convert.Options {
	config := o.config
	options := convert.Options{
		Format: convert.Format(o.Format), Path: o.Path, InstallNamespace: o.InstallNamespace,
		Helm: o.Options(), ValuesFiles: o.BundleFiles, Limits: o.Limits,
	}
	if o.declared != nil {
		options = o.declared.options(o)
		if given := o.declared.Deployment.Spec.RegistryV1; given != nil {
			config = *given.DeepCopy()
		}
	}
	if len(o.WatchNamespaces) > 0 {
		config.WatchNamespaces = o.WatchNamespaces
	}
	if o.CertificateProvider != "" {
		config.CertificateProvider = o.CertificateProvider
	}
	options.RegistryV1 = spec.RegistryV1(&config)
	return options
}

// Meaningless names the flags that do not apply to the bundle's format.
func (o *ConversionOptions) Meaningless(format convert.Format) []string {
	var lines []string
	if format != convert.RegistryV1 && (len(o.WatchNamespaces) > 0 || o.CertificateProvider != "" || o.ConfigFile != "") {
		lines = append(lines, fmt.Sprintf("the bundle is %s: --watch-namespace, --certificate-provider and --config have no effect on it", format))
	}
	if format != convert.Helm && o.Given() {
		lines = append(lines, fmt.Sprintf("the bundle is %s: --release-name, --values, --values-files, --set, --kube-version, --api-versions and --schema-validation have no effect on it", format))
	}
	return lines
}

// Reading is a bundle that is being read.
type Reading struct {
	*Bundle

	Options *ConversionOptions
}

// Open reads the files of -f and --config, and opens the bundle: what the argument names, or else the source of the
// BundleDeployment.
func Open(ctx context.Context, a *kit.App, o *ConversionOptions, what string) (Reading, error) {
	if err := o.Read(ctx, a); err != nil {
		return Reading{}, err
	}
	var b *Bundle
	var err error
	if what == "" && o.declared != nil {
		b, err = o.declared.Open(ctx, a, o.ImagePolicies)
		err = o.declared.scrub.Error(err)
	} else {
		b, err = OpenBundle(ctx, a, what, o.OpenOptions)
	}
	if err != nil {
		return Reading{}, err
	}
	return Reading{Bundle: b, Options: o}, nil
}

// hide removes the values of Secrets of -f from an error.
func (o *ConversionOptions) hide(err error) error {
	if o.declared == nil {
		return err
	}
	return o.declared.scrub.Error(err)
}

// Convert converts the opened bundle, and writes what was read, with warnings, to standard error.
func Convert(ctx context.Context, a *kit.App, r Reading, options convert.Options) (convert.Result, error) {
	fmt.Fprintf(a.Streams.ErrOut, "Reading %s.\n", view.Inline(r.From))
	result, err := a.Converted(ctx, r.Files, options)
	a.Note(r.Notes())
	meant := ""
	if err != nil || result.Format != convert.RegistryV1 {
		meant = r.Meant(r.Options.Path, err != nil)
	}
	hint(a, meant)
	if err != nil {
		return convert.Result{}, r.Options.hide(kit.Refused(err, meant != ""))
	}
	a.Note(r.Options.Meaningless(result.Format))
	for _, p := range lint.ForOLMOnly(result) {
		a.Note([]string{p.Object + ": " + p.Message + "; " + p.Remedy})
	}
	return result, nil
}

// ConvertBundle reads and converts a bundle. It removes the download before anything is written, because the reader of the
// output may end the process by closing the pipe.
func ConvertBundle(ctx context.Context, a *kit.App, o ConversionOptions, what string) (result convert.Result, err error) {
	r, err := Open(ctx, a, &o, what)
	if err != nil {
		return convert.Result{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	result, err = Convert(ctx, a, r, o.Convert())
	if err != nil {
		return convert.Result{}, err
	}
	fmt.Fprintf(a.Streams.ErrOut, "As installed in %s.\n", InstalledIn(r.Options.Convert().InstallNamespace, lint.Watched(result)))
	a.Note(kit.InFlags(result.Warnings))
	a.Note(clusterDecides(result))
	return result, nil
}

// InstalledIn says where the operator runs, and what it watches; "" stands for all namespaces.
func InstalledIn(namespace string, watched []string) string {
	switch {
	case len(watched) == 0:
		return namespace
	case slices.Contains(watched, ""):
		return namespace + ", watching all namespaces"
	case slices.Equal(watched, []string{namespace}):
		return namespace + ", watching that namespace only"
	}
	return namespace + ", watching " + view.WordList(watched)
}

// hint says which folder may have been meant, before everything that is wrong with the given one.
func hint(a *kit.App, meant string) {
	if meant != "" {
		fmt.Fprintf(a.Streams.ErrOut, "%s %s\n", printer.StyleFor(a.Streams.ErrOut).Paint(printer.Bold, "Hint:"), view.Inline(meant))
	}
}

// clusterDecides lists what is unknown without a cluster.
func clusterDecides(result convert.Result) []string {
	var lines []string
	for _, o := range result.Undecided {
		lines = append(lines, fmt.Sprintf("%s %s has no namespace here: only a cluster knows whether %s is namespaced; it gets the install namespace there",
			o.GetKind(), o.GetName(), o.GroupVersionKind().GroupKind()))
	}
	return lines
}
