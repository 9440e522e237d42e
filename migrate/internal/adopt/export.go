// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// exportOptions are the flags of adopt --export.
type exportOptions struct {
	export              bool
	helmRepository      string
	image               string
	git, branch, folder string
	account             string
	valuesSecret        bool
}

// exportFlags are the names of flags that have an effect with --export only.
var exportFlags = []string{"helm-repository", "image", "git", "branch", "path", "service-account", "values-secret"}

// adoptOnly are the names of flags without effect on --export.
var adoptOnly = []string{"dry-run", "yes", "delete-former", "delete-leftovers", "allow-restarts", "timeout", "output"}

func (o *exportOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.export, "export", false, "Print the BundleDeployment NAME for a Helm release, helm/NAME or that of --former, and change nothing.")
	flags.StringVar(&o.helmRepository, "helm-repository", "", "With --export: URL of the Helm repository, with an index, that has the chart.")
	flags.StringVar(&o.image, "image", "", "With --export: image of the chart in a registry; without a tag: that of the release's version.")
	flags.StringVar(&o.git, "git", "", "With --export: URL of the Git repository that has the chart.")
	flags.StringVar(&o.branch, "branch", "main", "With --git: branch of the repository.")
	flags.StringVar(&o.folder, "path", "", "With --git: folder of the chart.")
	flags.StringVar(&o.account, "service-account", "installer", "With --export: ServiceAccount that the controller impersonates.")
	flags.BoolVar(&o.valuesSecret, "values-secret", false, "With --export: put the values into a Secret, as is done where they look like secrets.")
}

// check refuses flags that have no effect together.
func (o *exportOptions) check(cmd *cobra.Command, former string, t kit.Target) error {
	if !o.export {
		for _, name := range exportFlags {
			if cmd.Flag(name).Changed {
				return kit.UsageError(cmd, "--%s has no effect without --export", name)
			}
		}
		return nil
	}
	for _, name := range adoptOnly {
		if cmd.Flag(name).Changed {
			return kit.UsageError(cmd, "--export only prints manifests, so --%s has no effect", name)
		}
	}
	if former != "" && FormerNamed(former, "")[0].Kind != ReleaseKind {
		return kit.UsageError(cmd, "--export is for Helm releases: --former %q is none; the command manifests translates those of OLM and RukPak", former)
	}
	if wrong := validation.IsDNS1123Label(t.Name); len(wrong) > 0 {
		return kit.UsageError(cmd, "the name %q cannot be that of a BundleDeployment: %s; name the release with --former helm/NAME", t.Name, wrong[0])
	}
	return o.checkSource(cmd)
}

// checkSource refuses an export without a source, or with several.
func (o *exportOptions) checkSource(cmd *cobra.Command) error {
	given := 0
	for _, source := range []string{o.helmRepository, o.image, o.git} {
		if source != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return kit.UsageError(cmd, "a Helm release does not record where its chart came from: name it with --helm-repository URL, --image IMAGE or --git URL")
	case given > 1:
		return kit.UsageError(cmd, "a chart comes from one of --helm-repository, --image and --git")
	case o.git == "" && (cmd.Flag("branch").Changed || o.folder != ""):
		return kit.UsageError(cmd, "--branch and --path have no effect without --git")
	case strings.HasPrefix(o.helmRepository, "oci://"):
		return kit.UsageError(cmd, "%s is a registry: write --image %s/CHART", o.helmRepository, strings.TrimRight(strings.TrimPrefix(o.helmRepository, "oci://"), "/"))
	case o.image == "":
		return nil
	}
	if _, err := bundle.ImageReference(strings.TrimPrefix(o.image, "oci://"), false); err != nil {
		return kit.UsageError(cmd, "--image %v", err)
	}
	return nil
}

// export prints the BundleDeployment of a Helm release, and a Secret with its values where these look like secrets.
func export(ctx context.Context, a *kit.App, o adoptOptions, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	config, err := a.RestConfig()
	if err != nil {
		return err
	}
	reader, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	former := FormerNamed(cmp.Or(o.former, "helm/"+t.Name), c.Namespace)[0]
	release, err := deployedRelease(ctx, reader, c.Namespace, former.Name)
	if err != nil {
		return err
	}
	objects, notes, err := o.exported(release, c.Namespace, t.Name)
	if err != nil {
		return err
	}
	if err := printer.WriteManifests(a.Streams.Out, objects); err != nil {
		return err
	}
	a.Note(notes)
	fmt.Fprintf(a.Streams.ErrOut, "The Helm release %s/%s was not changed. Next: create the ServiceAccount %s (see %s rbac), apply this, and adopt the objects:\n"+
		"  kubectl satchel-migrate adopt %s -n %s%s --dry-run\n", c.Namespace, view.Inline(release.Name), view.Inline(o.exporting.account), a.Name, t.Name, c.Namespace, formerFlag(o.former))
	return nil
}

func formerFlag(former string) string {
	if former == "" {
		return ""
	}
	return " --former " + view.ShellWord(former)
}

// exported makes the manifests, and says what the reader has to know about them.
func (o adoptOptions) exported(release HelmRelease, namespace, name string) (objects []*unstructured.Unstructured, notes []string, err error) {
	values, err := release.values()
	if err != nil {
		return nil, nil, fmt.Errorf("the Helm release %s/%s: %w", namespace, release.Name, err)
	}
	d := &v1alpha1.BundleDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleDeploymentKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
	}
	d.Spec.Source = &v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{o.exporting.source(release)}}
	d.Spec.ServiceAccountName, d.Spec.Format = o.exporting.account, v1alpha1.FormatHelm
	d.Spec.Helm = &v1alpha1.HelmOptions{ReleaseName: release.Name}
	secrets := SecretValues(values)
	switch {
	case len(values) == 0:
	case len(secrets) > 0 || o.exporting.valuesSecret:
		secret, err := valuesSecret(namespace, name, values)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, secret)
		d.Spec.Helm.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Secret", Name: secret.GetName()}}
		notes = append(notes, secretNote(secret.GetName(), secrets))
	default:
		encoded, err := json.Marshal(values)
		if err != nil {
			return nil, nil, fmt.Errorf("writing the values: %w", err)
		}
		d.Spec.Helm.Values = &apiextensionsv1.JSON{Raw: encoded}
	}
	if o.exporting.git != "" {
		notes = append(notes, fmt.Sprintf("the release has version %s of the chart %s: check that the branch %s has it", release.Chart.Metadata.Version,
			release.Chart.Metadata.Name, o.exporting.branch))
	}
	plain, err := printer.PlainOf(d)
	if err != nil {
		return nil, nil, err
	}
	return append(objects, &unstructured.Unstructured{Object: plain}), notes, nil
}

// secretNote says why there is a Secret. It names values, and shows none.
func secretNote(name string, secrets []string) string {
	why := "the values are in the Secret " + name
	if len(secrets) > 0 {
		why = fmt.Sprintf("values look like secrets (%s), so all values are in the Secret %s", strings.Join(secrets[:min(len(secrets), maxNamedValues)], ", "), name)
	}
	return why + ": encrypt it before it is committed, or create it in another way"
}

// maxNamedValues is how many values a note names.
const maxNamedValues = 5

// valuesSecret is a Secret with values, as spec.helm.valuesFrom takes them.
func valuesSecret(namespace, name string, values map[string]any) (*unstructured.Unstructured, error) {
	text, err := printer.YamlText(values)
	if err != nil {
		return nil, fmt.Errorf("writing the values: %w", err)
	}
	secret := &unstructured.Unstructured{Object: map[string]any{"stringData": map[string]any{v1alpha1.DefaultValuesKey: string(text)}}}
	secret.SetAPIVersion("v1")
	secret.SetKind("Secret")
	secret.SetNamespace(namespace)
	secret.SetName(name + "-values")
	return secret, nil
}

// source is where the chart comes from: as the user says, in the version of the release.
func (o *exportOptions) source(release HelmRelease) v1alpha1.Source {
	chart := release.Chart.Metadata
	switch {
	case o.helmRepository != "":
		return v1alpha1.Source{Helm: &v1alpha1.HelmSource{URL: o.helmRepository, Chart: chart.Name, Version: chart.Version}}
	case o.image != "":
		return v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: release.imageOf(strings.TrimPrefix(o.image, "oci://"))}}
	}
	return v1alpha1.Source{Git: &v1alpha1.GitSource{URL: o.git, Ref: &v1alpha1.GitRef{Branch: o.branch}, Path: o.folder}}
}
