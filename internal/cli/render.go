// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// renderOptions are the flags of render.
type renderOptions struct {
	bundle              bundleOptions
	installNamespace    string
	watchNamespaces     []string
	format              string
	path                string
	certificateProvider string
}

func (a *app) renderCommand() *cobra.Command {
	var o renderOptions
	cmd := &cobra.Command{
		Use:     "render PATH|IMAGE --install-namespace NS",
		GroupID: groupPreview,
		Short:   "Print the manifests that a bundle becomes, without a cluster",
		Long: `Reads a bundle from a folder or from an image and prints the manifests that a BundleDeployment would apply, as a YAML
stream in a stable order. No cluster is asked. What exists on the disk is read as a folder; anything else is an image.
Everything that is not a manifest goes to standard error: what was read, warnings, and, when the bundle is refused, all
problems at once.

` + exitCodes,
		Example: a.example(`
# What would this folder install?
satchel render ./bundle --install-namespace demo

# What would change in the cluster? (needs its rights)
satchel render ./bundle --install-namespace demo 2>/dev/null | kubectl diff -f -

# An operator's bundle from a registry, watching two namespaces
satchel render quay.io/org/operator-bundle:v1.2.3 --install-namespace operators \
  --watch-namespace shop --watch-namespace billing

# From a registry on this machine, without TLS
satchel render localhost:5000/bundle:dev --insecure --install-namespace demo`),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usageError(cmd, "render needs one folder or image, got: %s", dash(strings.Join(args, " ")))
			case o.installNamespace == "":
				return usageError(cmd, "render needs --install-namespace, the namespace of objects that name none")
			case cmd.Flag("namespace").Changed:
				return usageError(cmd, "render asks no cluster, so --namespace means nothing here: give --install-namespace only")
			}
			return a.render(cmd.Context(), o, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.installNamespace, "install-namespace", "", "Namespace of the objects that name none, and of the operator. Required.")
	flags.StringArrayVar(&o.watchNamespaces, "watch-namespace", nil,
		"Namespace that the operator of a registry+v1 bundle watches; may be repeated. Without it: all, where the bundle supports that.")
	flags.StringVar(&o.path, "path", "", "Folder inside the folder or image that holds the bundle.")
	flags.StringVar(&o.bundle.platform, "platform", "", "Platform of the image, as os/arch; without it: linux/amd64, or the only one.")
	flags.BoolVar(&o.bundle.insecure, "insecure", false, "Speak plain HTTP with the image's registry.")
	a.enumFlag(cmd, &o.format, "format", "", "Format of the bundle; detected when left out.",
		string(convert.PlainV0), string(convert.RegistryV1))
	a.enumFlag(cmd, &o.certificateProvider, "certificate-provider", "",
		"What issues the certificates of a registry+v1 bundle's webhooks.",
		string(registryv1.CertManager), string(registryv1.ServiceCA))
	a.completeFlag(cmd, "install-namespace", a.completeNamespaces)
	a.completeFlag(cmd, "watch-namespace", a.completeNamespaces)
	return cmd
}

// render writes the manifests of a bundle.
func (a *app) render(ctx context.Context, o renderOptions, what string) error {
	result, err := a.convertBundle(ctx, o, what)
	if err != nil {
		return err
	}
	a.note(result.Warnings)
	a.note(clusterDecides(result))
	return writeManifests(a.streams.Out, result.Objects)
}

// convertBundle reads and converts a bundle. What was downloaded is gone when it returns, before anything is written:
// whoever reads the output may end the process by closing it.
func (a *app) convertBundle(ctx context.Context, o renderOptions, what string) (result convert.Result, err error) {
	b, err := a.openBundle(ctx, what, o.bundle)
	if err != nil {
		return convert.Result{}, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	fmt.Fprintf(a.streams.ErrOut, "Reading %s.\n", printable(b.from))
	result, err = convert.Convert(b.files, o.convert())
	a.note(b.notes())
	if err != nil {
		return convert.Result{}, refused(err, bundleBelow(b.files, o))
	}
	return result, nil
}

func (o renderOptions) convert() convert.Options {
	return convert.Options{
		Format: convert.Format(o.format), Path: o.path, InstallNamespace: o.installNamespace,
		RegistryV1: registryv1.Options{
			WatchNamespaces:     o.watchNamespaces,
			CertificateProvider: registryv1.CertificateProvider(o.certificateProvider),
		},
	}
}

// note writes lines to standard error.
func (a *app) note(lines []string) {
	s := styleFor(a.streams.ErrOut)
	for _, line := range lines {
		fmt.Fprintf(a.streams.ErrOut, "%s %s\n", s.paint(yellow, "Warning:"), oneLine(line, 0))
	}
}

// clusterDecides says what is not known without a cluster.
func clusterDecides(result convert.Result) []string {
	var lines []string
	for _, o := range result.Undecided {
		lines = append(lines, fmt.Sprintf("%s %s has no namespace here: only a cluster knows whether %s is namespaced; it gets the install namespace there",
			o.GetKind(), o.GetName(), o.GroupVersionKind().GroupKind()))
	}
	return lines
}

// bundleBelow returns a folder that looks like the bundle that was meant: the one below, where the user gave its parent.
func bundleBelow(files fs.FS, o renderOptions) string {
	if o.path != "" {
		return ""
	}
	// The pattern is well-formed, so that it cannot fail.
	found, _ := fs.Glob(files, "*/metadata/annotations.yaml")
	if len(found) == 0 {
		return ""
	}
	return path.Dir(path.Dir(found[0]))
}

// refused lists all problems of a bundle under one sentence; below is a folder that may have been meant.
func refused(err error, below string) error {
	var problems *convert.Error
	if !errors.As(err, &problems) {
		return err
	}
	lines := []string{"the bundle is refused, " + plural(len(problems.Problems), "problem") + ":"}
	for _, p := range problems.Problems {
		lines = append(lines, "  - "+oneLine(p.String(), 0))
	}
	if below != "" {
		lines = append(lines, fmt.Sprintf("The folder %s looks like a registry+v1 bundle; if it was meant, add --path %s", below, below))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// writeManifests writes objects as a stream of YAML documents, in their order.
func writeManifests(out io.Writer, objects []*unstructured.Unstructured) error {
	buffered := bufio.NewWriter(out)
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("writing %s %s as YAML: %w", o.GetKind(), o.GetName(), err)
		}
		buffered.WriteString("---\n")
		buffered.Write(text)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	return nil
}
