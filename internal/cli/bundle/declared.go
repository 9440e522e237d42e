// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm/document"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/values"
)

// Declared is a BundleDeployment of the files of -f, with the values that they hold.
type Declared struct {
	Set        *manifests.Set
	Deployment *v1alpha1.BundleDeployment

	given spec.Given
	scrub *values.Scrubber // removes values of Secrets from messages
}

// ReadDeclared reads a BundleDeployment of files; without a name the only one. One without a namespace gets the given one.
func ReadDeclared(ctx context.Context, a *kit.App, files []string, name, namespace string) (*Declared, error) {
	set, err := manifests.Read(files, a.Streams.In)
	if err != nil {
		return nil, err
	}
	d, err := set.Deployment(ctx, name, namespace)
	if err != nil {
		return nil, err
	}
	return &Declared{Set: set, Deployment: d, scrub: &values.Scrubber{}}, nil
}

// readInputs reads the values that the spec refers to from the files.
func (d *Declared) readInputs() error {
	contents, err := d.Set.Contents(d.Deployment)
	if err != nil {
		return err
	}
	inputs := spec.Inputs(d.Deployment)
	d.scrub = spec.Scrubber(d.Deployment, inputs, contents)
	if err := d.Set.Missing(d.Deployment, contents); err != nil {
		return err
	}
	if err := spec.Lacking(d.Deployment.Namespace, inputs, contents); err != nil {
		return err
	}
	d.given.Contents = contents
	d.given.Values, err = spec.HelmValues(d.Deployment, contents)
	return err
}

// Open fetches the source of the deployment, with the Secrets of the files, under the BundleImagePolicies of policies.
func (d *Declared) Open(ctx context.Context, a *kit.App, policies []string) (*Bundle, error) {
	source, err := d.Set.Source(ctx, d.Deployment)
	if err != nil {
		return nil, err
	}
	if source == nil {
		ref := d.Deployment.Spec.SourceRef
		return nil, fmt.Errorf("BundleDeployment %s refers to %s %s, which is not in %s: add its manifest to the files of -f, or give a folder or an image in its place",
			d.Deployment.Name, ref.Kind, ref.Name, d.Set.From())
	}
	var missing []error
	for _, name := range MissingSecrets(source, func(name string) bool { return d.Set.Holds(spec.SecretKind, d.Deployment.Namespace, name) }) {
		missing = append(missing, fmt.Errorf("the source of BundleDeployment %s refers to the Secret %s, which is not in %s: add it to the files of -f, or give a folder or an image in place of the source",
			d.Deployment.Name, name, d.Set.From()))
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	return OpenSource(ctx, a, source, credentials.NewSecrets(d.Set.Reader(nil), d.Deployment.Namespace), policies)
}

// options is how the deployment converts its bundle, with what flags say over it.
func (d *Declared) options(o *ConversionOptions) convert.Options {
	options := spec.Conversion(d.Deployment, d.given, o.Limits)
	options.Format = cmp.Or(convert.Format(o.Format), options.Format)
	options.Path = cmp.Or(o.Path, options.Path)
	options.InstallNamespace = cmp.Or(o.InstallNamespace, options.InstallNamespace)
	if len(o.BundleFiles) > 0 {
		options.ValuesFiles = o.BundleFiles
	}
	options.Helm.ReleaseName = cmp.Or(o.ReleaseName, options.Helm.ReleaseName)
	options.Helm.Capabilities = o.Options().Capabilities
	options.Helm.Schemas = cmp.Or(o.Options().Schemas, options.Helm.Schemas)
	if len(o.values) > 0 {
		options.Helm.Values = document.Over(options.Helm.Values, o.values)
	}
	return options
}
