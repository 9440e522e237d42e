// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/resolver"
	"github.com/satchel-dev/satchel/internal/resolver/closure"
	"github.com/satchel-dev/satchel/internal/view"
)

// bundles is the output of a closure for programs.
type bundles struct {
	Bundles []required `json:"bundles"`
	Notes   []string   `json:"notes,omitempty"`
}

// required is one bundle of a closure.
type required struct {
	Package string `json:"package"`
	choice
	// DependsOn are packages of the closure, and Deployments are BundleDeployments of the cluster.
	DependsOn   []string `json:"dependsOn,omitempty"`
	Deployments []string `json:"deployments,omitempty"`
	RequiredBy  []string `json:"requiredBy,omitempty"`
}

// checkDependencies refuses flags that make no sense together.
func (o *options) checkDependencies(cmd *cobra.Command) error {
	o.accountGiven = cmd.Flag("service-account").Changed
	switch {
	case o.dependencies && o.write != "":
		return kit.UsageError(cmd, "--write writes one bundle, and --with-dependencies resolves several: use -o yaml, and write it into a new file")
	case o.accountGiven && (!o.dependencies || o.output != printer.OutputYAML):
		return kit.UsageError(cmd, "--service-account is about the manifests of --with-dependencies -o yaml")
	}
	return nil
}

// resolveAll shows a bundle with all that it requires.
func (o *options) resolveAll(ctx context.Context, a *kit.App, asked *question) (err error) {
	set, err := o.open(ctx, a, asked)
	defer func() { err = errors.Join(err, set.Close()) }()
	if err != nil {
		return err
	}
	source := set.Dependencies(ctx)
	installed, err := source.Installed()
	if err != nil {
		return err
	}
	if asked.deployment != nil { // it does not depend on itself
		installed = slices.DeleteFunc(installed, func(i closure.Installed) bool { return i.Deployment == asked.deployment.Name })
	}
	catalogs, err := source.Package(asked.query.Package)
	if err != nil {
		return err
	}
	if err := asked.start(catalogs); err != nil {
		return err
	}
	found, err := closure.Find(asked.query, source, installed)
	var missing *closure.RefusalError
	var refusal *resolver.RefusalError
	switch {
	case errors.As(err, &missing):
		fmt.Fprintln(a.Streams.ErrOut, view.Inline(missing.Text))
		for _, line := range missing.Details() {
			fmt.Fprintf(a.Streams.ErrOut, "  %s\n", view.Inline(line))
		}
		return kit.ErrRefused
	case errors.As(err, &refusal):
		loaded, err := set.Load(ctx, asked.query.Package)
		if err != nil {
			return err
		}
		asked.printRefusal(a, refusal, loaded.Similar(asked.query.Package))
		return kit.ErrRefused
	case err != nil:
		return err
	}
	for _, b := range found.Bundles {
		for _, d := range deprecations(b.Answer) {
			a.Note([]string{fmt.Sprintf("package %s: deprecated %s", b.Package, d)})
		}
	}
	root := found.Bundles[len(found.Bundles)-1].Answer
	a.Note(asked.notes(root))
	if err := o.printAll(a, asked, found); err != nil {
		return err
	}
	if asked.change(root) != "" {
		return kit.ErrNo
	}
	return nil
}

func (o *options) printAll(a *kit.App, asked *question, found closure.Closure) error {
	switch o.output {
	case printer.OutputYAML:
		a.Note(found.Notes)
		objects, err := o.deployments(a, asked, found)
		if err != nil {
			return err
		}
		return printer.WriteManifests(a.Streams.Out, objects)
	case printer.OutputJSON:
		return printer.PrintValue(a.Streams.Out, o.output, values(found))
	}
	a.Note(found.Notes)
	table := printer.Table{Headers: []string{"PACKAGE", "BUNDLE", "VERSION", "CATALOG", "REQUIRED BY"}}
	for _, b := range found.Bundles {
		table.Add(b.Package, b.Bundle, b.Version, b.Catalog, kit.Dash(strings.Join(b.RequiredBy, "; ")))
	}
	_, err := fmt.Fprint(a.Streams.Out, table.Render(printer.StyleFor(a.Streams.Out)))
	return err
}

func values(found closure.Closure) bundles {
	all := bundles{Notes: found.Notes}
	for _, b := range found.Bundles {
		all.Bundles = append(all.Bundles, required{
			Package: b.Package, choice: choice{Bundle: b.Bundle, Version: b.Version, Image: b.Image, Catalog: b.Catalog},
			DependsOn: b.DependsOn, Deployments: b.Deployments, RequiredBy: b.RequiredBy,
		})
	}
	return all
}

// deployments are the manifests of a closure, each named after its package, except a BundleDeployment that was given. They have exact
// versions, so that what was reviewed is what is installed.
func (o *options) deployments(a *kit.App, asked *question, found closure.Closure) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, b := range found.Bundles {
		if b.Package == asked.query.Package && asked.deployment != nil {
			object, err := extended(asked.deployment, b, namespaceFor(a, asked))
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
			continue
		}
		if problems := validation.IsDNS1123Label(b.Package); len(problems) > 0 {
			return nil, fmt.Errorf("the package %q cannot be the name of a BundleDeployment: write its manifest, and those of what it requires, by hand: -o json has the bundles", b.Package)
		}
		if d := asked.deployment; d != nil && d.Name == b.Package {
			return nil, fmt.Errorf("the required package %s needs a BundleDeployment of its own, and BundleDeployment %s has that name already: write its manifest by hand: -o json has the bundles", b.Package, d.Name)
		}
		from := map[string]any{"package": b.Package, "version": b.Version, "catalogs": []any{b.Catalog}}
		if b.Package == asked.query.Package {
			o.ofRoot(asked, from)
		}
		spec := map[string]any{"serviceAccountName": o.accountFor(asked), "catalog": from}
		var dependsOn []any
		for _, name := range slices.Concat(b.DependsOn, b.Deployments) {
			dependsOn = append(dependsOn, map[string]any{"name": name})
		}
		if len(dependsOn) > 0 {
			spec["dependsOn"] = dependsOn
		}
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": b.Package}, "spec": spec}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleDeploymentKind))
		if namespace := namespaceFor(a, asked); namespace != "" {
			object.SetNamespace(namespace)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// extended is a BundleDeployment with the bundle of the closure as its exact version, and what that depends on. Its lock is left
// out: it may name another bundle.
func extended(d *v1alpha1.BundleDeployment, b closure.Bundle, namespace string) (*unstructured.Unstructured, error) {
	written := &v1alpha1.BundleDeployment{Spec: *d.Spec.DeepCopy()}
	written.Spec.Catalog.Version, written.Spec.Catalog.Lock = b.Version, nil
	for _, name := range slices.Concat(b.DependsOn, b.Deployments) {
		if !slices.ContainsFunc(d.Spec.DependsOn, func(known v1alpha1.Dependency) bool { return known.Name == name }) {
			written.Spec.DependsOn = append(written.Spec.DependsOn, v1alpha1.Dependency{Name: name})
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(written)
	if err != nil {
		return nil, fmt.Errorf("writing BundleDeployment %s: %w", d.Name, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": d.Name}, "spec": content["spec"]}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleDeploymentKind))
	if namespace != "" {
		object.SetNamespace(namespace)
	}
	return object, nil
}

// accountFor is the ServiceAccount of the further BundleDeployments: that of the given one, unless the flag names another one.
func (o *options) accountFor(asked *question) string {
	if asked.deployment != nil && !o.accountGiven {
		return asked.deployment.Spec.ServiceAccountName
	}
	return o.account
}

// namespaceFor is the namespace of the given BundleDeployment, or else of the flags; "" for none.
func namespaceFor(a *kit.App, asked *question) string {
	if asked.deployment != nil && asked.deployment.Namespace != "" {
		return asked.deployment.Namespace
	}
	return a.GivenNamespace()
}

// ofRoot adds what the flags say about the package itself.
func (o *options) ofRoot(asked *question, from map[string]any) {
	if len(asked.query.Channels) > 0 {
		var channels []any
		for _, channel := range asked.query.Channels {
			channels = append(channels, channel)
		}
		from["channels"] = channels
	}
	if asked.query.UpgradePolicy == resolver.SelfCertified {
		from["upgradePolicy"] = string(resolver.SelfCertified)
		from["downgrade"] = string(asked.query.Downgrade)
	}
}
