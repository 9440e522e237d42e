// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// published converts the artifact of a deployment's source, as the controller does.
func published(ctx context.Context, a *kit.App, c *kit.Cluster, d *v1alpha1.BundleDeployment, limits convert.Limits) (result convert.Result, err error) {
	files, closed, err := openPublished(ctx, a, c, d)
	if err != nil {
		return convert.Result{}, err
	}
	defer func() { err = errors.Join(err, closed()) }()
	config, err := a.RestConfig()
	if err != nil {
		return convert.Result{}, err
	}
	user, err := tenant.ForUser(config, tenant.Options{})
	if err != nil {
		return convert.Result{}, err
	}
	read, err := bundle.ReadInputs(ctx, d, nil, user, user, files)
	if err != nil {
		return convert.Result{}, err
	}
	result, err = a.Converted(ctx, files, spec.Conversion(d, read.Given, limits))
	if err != nil {
		return convert.Result{}, read.Scrub.Error(kit.Refused(err, false))
	}
	return result, nil
}

// openPublished loads the artifact of a deployment's BundleSource, and checks its digest.
func openPublished(ctx context.Context, a *kit.App, c *kit.Cluster, d *v1alpha1.BundleDeployment) (fs.FS, func() error, error) {
	source, err := publishedSource(ctx, c, d)
	if err != nil {
		return nil, nil, err
	}
	config, err := a.RestConfig()
	if err != nil {
		return nil, nil, err
	}
	b, err := bundle.OpenArtifact(ctx, a, config, artifact.SourceOwner(source.Namespace, source.Name), *source.Status.Artifact)
	if err != nil {
		return nil, nil, err
	}
	return b.Files, b.Close, nil
}

// publishedSource is the BundleSource of a deployment, with an artifact.
func publishedSource(ctx context.Context, c *kit.Cluster, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	if effective.SourceName(d) == "" {
		return nil, fmt.Errorf("the source of %s %s is %s, which Flux fetches, and this command reads BundleSources", kit.Deployments.Name, d.Name, effective.SourceDisplayName(d))
	}
	found, err := c.Get(ctx, kit.Target{Kind: kit.Sources, Name: effective.SourceName(d)})
	if err != nil {
		return nil, err
	}
	source, ok := found.(*v1alpha1.BundleSource)
	if !ok || source.Status.Artifact == nil || source.Status.SourcesDigest != effective.SourcesDigest(&source.Spec) {
		return nil, fmt.Errorf("the %s %q has not been fetched yet: satchel get source %s says why", kit.Sources.Name, effective.SourceName(d), effective.SourceName(d))
	}
	return source, nil
}
