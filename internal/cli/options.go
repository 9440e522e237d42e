// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/lint"
	"github.com/satchel-dev/satchel/internal/spec"
)

// bundleOptions name a bundle: the flags of all commands that read one.
type bundleOptions struct {
	path, format string
	platform     string // of an image
	insecure     bool   // an image's registry speaks plain HTTP
	key          string // file of the public key that has to have signed an image
}

// conversionOptions say what a bundle becomes: the flags of all commands that convert one.
type conversionOptions struct {
	bundleOptions
	chartOptions

	installNamespace    string
	watchNamespaces     []string
	certificateProvider string
	configFile          string
	overlaysFile        string

	config   v1alpha1.RegistryV1Options // of the file, see read
	overlays overlay.Options            // of the other file
}

// bundleFlags adds the flags that name a bundle.
func (a *app) bundleFlags(cmd *cobra.Command, o *bundleOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.path, "path", "", "Folder inside the folder or image that holds the bundle.")
	flags.StringVar(&o.platform, "platform", "", "Platform of the image, as os/arch; without it: linux/amd64, or the only one.")
	flags.BoolVar(&o.insecure, "insecure", false, "Speak plain HTTP with the image's registry.")
	a.enumFlag(cmd, &o.format, "format", "", "Format of the bundle; detected when left out.",
		string(convert.PlainV0), string(convert.RegistryV1), string(convert.Helm), string(convert.Kustomize))
}

// conversionFlags adds the flags that name a bundle and say what it becomes. installNamespace is the help of that flag.
func (a *app) conversionFlags(cmd *cobra.Command, o *conversionOptions, installNamespace string) {
	a.bundleFlags(cmd, &o.bundleOptions)
	flags := cmd.Flags()
	flags.StringVar(&o.installNamespace, "install-namespace", "", installNamespace)
	flags.StringArrayVar(&o.watchNamespaces, "watch-namespace", nil,
		"Namespace that the operator of a registry+v1 bundle watches; may be repeated. Without it: all, where the bundle supports that.")
	a.enumFlag(cmd, &o.certificateProvider, "certificate-provider", "",
		"What issues the certificates of a registry+v1 bundle's webhooks; without it: self-signed.",
		string(registryv1.SelfSigned), string(registryv1.CertManager), string(registryv1.ServiceCA))
	flags.StringVar(&o.configFile, "config", "", "File with the contents of spec.registryV1 in YAML, or - for standard input. "+
		"--watch-namespace and --certificate-provider replace what it says.")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json") // it only fails for a flag that does not exist
	flags.StringVar(&o.overlaysFile, "overlays", "", "File with a BundleDeployment, or - for standard input: its patches, names, images, variables, "+
		"common metadata and image rewrites adapt the bundle. ConfigMaps and Secrets of the file give the values of substituteFrom.")
	_ = cmd.MarkFlagFilename("overlays", "yaml", "yml", "json") // it only fails for a flag that does not exist
	a.chartFlags(cmd, &o.chartOptions)
	a.completeFlag(cmd, "install-namespace", a.completeNamespaces)
	a.completeFlag(cmd, "watch-namespace", a.completeNamespaces)
}

// oneBundle returns the only argument of a command about a bundle.
func oneBundle(cmd *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) != 1:
		return "", usageError(cmd, "%s needs one folder or image, got %s", cmd.Name(), given(args))
	case cmd.Flag("namespace").Changed:
		return "", usageError(cmd, "%s uses no cluster, so --namespace has no effect; the namespace of the operator is --install-namespace", cmd.Name())
	}
	return args[0], nil
}

// given are the arguments of a command that wants another number of them.
func given(args []string) string {
	if len(args) == 0 {
		return "none"
	}
	return strconv.Itoa(len(args)) + ": " + strings.Join(args, " ")
}

// read reads the files of --config, --overlays and --values.
func (o *conversionOptions) read(a *app) (err error) {
	if inputs := slices.DeleteFunc(append([]string{o.configFile, o.overlaysFile}, o.files...), func(file string) bool { return file != "-" }); len(inputs) > 1 {
		return errors.New("only one of --config, --overlays and --values can be standard input, and once: give the others as files")
	}
	if o.configFile != "" {
		o.config, err = readConfig(o.configFile, a.streams.In)
	}
	if o.overlaysFile != "" && err == nil {
		o.overlays, err = readOverlays(o.overlaysFile, a.streams.In)
	}
	if err != nil {
		return err
	}
	return o.chartOptions.read(a.streams.In)
}

// convert is how the bundle is converted: by the file, and by the flags where they are given.
func (o *conversionOptions) convert() convert.Options {
	config := o.config
	if len(o.watchNamespaces) > 0 {
		config.WatchNamespaces = o.watchNamespaces
	}
	if o.certificateProvider != "" {
		config.CertificateProvider = o.certificateProvider
	}
	return convert.Options{
		Format: convert.Format(o.format), Path: o.path, InstallNamespace: o.installNamespace, RegistryV1: spec.RegistryV1(&config), Overlay: o.overlays,
		Helm: o.options(),
	}
}

// meaningless names the flags that do not apply to the bundle's format.
func (o *conversionOptions) meaningless(format convert.Format) []string {
	var lines []string
	if format != convert.RegistryV1 && (len(o.watchNamespaces) > 0 || o.certificateProvider != "" || o.configFile != "") {
		lines = append(lines, fmt.Sprintf("the bundle is %s: --watch-namespace, --certificate-provider and --config have no effect on it", format))
	}
	if format != convert.Helm && o.given() {
		lines = append(lines, fmt.Sprintf("the bundle is %s: --release-name, --values, --set, --kube-version and --api-versions have no effect on it", format))
	}
	return lines
}

// reading is a bundle that is being read.
type reading struct {
	*bundle

	options *conversionOptions
}

// open reads the files of --config and --overlays, and opens the bundle, and says so on standard error.
func (a *app) open(ctx context.Context, o *conversionOptions, what string) (reading, error) {
	if err := o.read(a); err != nil {
		return reading{}, err
	}
	b, err := a.openBundle(ctx, what, o.bundleOptions)
	if err != nil {
		return reading{}, err
	}
	return reading{bundle: b, options: o}, nil
}

// convert converts the opened bundle, and writes what was read, with warnings, to standard error.
func (a *app) convert(ctx context.Context, r reading, options convert.Options) (convert.Result, error) {
	fmt.Fprintf(a.streams.ErrOut, "Reading %s.\n", inline(r.from))
	result, err := a.converted(ctx, r.files, options)
	a.note(r.notes())
	meant := ""
	if err != nil || result.Format != convert.RegistryV1 {
		meant = r.meant(r.options.path, err != nil)
	}
	a.hint(meant)
	if err != nil {
		return convert.Result{}, refused(err, meant != "")
	}
	a.note(r.options.meaningless(result.Format))
	for _, p := range lint.ForOLMOnly(result) {
		a.note([]string{p.Object + ": " + p.Message + "; " + p.Remedy})
	}
	return result, nil
}

// convertBundle reads and converts a bundle. It removes the download before anything is written, because the reader of the
// output may end the process by closing the pipe.
func (a *app) convertBundle(ctx context.Context, o conversionOptions, what string) (result convert.Result, err error) {
	r, err := a.open(ctx, &o, what)
	if err != nil {
		return convert.Result{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	result, err = a.convert(ctx, r, o.convert())
	if err != nil {
		return convert.Result{}, err
	}
	fmt.Fprintf(a.streams.ErrOut, "As installed in %s.\n", installedIn(o.installNamespace, lint.Watched(result)))
	a.note(inFlags(result.Warnings))
	a.note(clusterDecides(result))
	return result, nil
}

// installedIn says where the operator runs, and what it watches; "" stands for all namespaces.
func installedIn(namespace string, watched []string) string {
	switch {
	case len(watched) == 0:
		return namespace
	case slices.Contains(watched, ""):
		return namespace + ", watching all namespaces"
	case slices.Equal(watched, []string{namespace}):
		return namespace + ", watching that namespace only"
	}
	return namespace + ", watching " + wordList(watched)
}

// note writes warnings to standard error.
func (a *app) note(lines []string) {
	s := styleFor(a.streams.ErrOut)
	for _, line := range lines {
		fmt.Fprintf(a.streams.ErrOut, "%s %s\n", s.paint(yellow, "Warning:"), inline(line))
	}
}

// hint says which folder may have been meant, before everything that is wrong with the given one.
func (a *app) hint(meant string) {
	if meant != "" {
		fmt.Fprintf(a.streams.ErrOut, "%s %s\n", styleFor(a.streams.ErrOut).paint(bold, "Hint:"), inline(meant))
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

// mostBelowHint bounds the problems that are listed of a folder that was probably not meant.
const mostBelowHint = 5

// refused lists the problems of a bundle under one sentence; hinted says that another folder was probably meant.
func refused(err error, hinted bool) error {
	var problems *convert.Error
	if !errors.As(err, &problems) {
		return err
	}
	limit := mostListed
	if hinted {
		limit = mostBelowHint
	}
	lines := []string{"the bundle is refused, " + plural(len(problems.Problems), "problem") + ":"}
	for _, p := range problems.Problems[:min(len(problems.Problems), limit)] {
		p.Remedy = flagsFor(p.Remedy)
		lines = append(lines, "  - "+inline(p.String()))
	}
	if more := len(problems.Problems) - limit; more > 0 {
		lines = append(lines, fmt.Sprintf("  - and %d more; validate -o json lists all", more))
	}
	return errors.New(strings.Join(lines, "\n"))
}
