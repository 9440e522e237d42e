// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
)

// published converts the artifact of a deployment's source, as the controller does.
func (a *app) published(ctx context.Context, c *cluster, d *v1alpha1.BundleDeployment) (result convert.Result, err error) {
	files, closed, err := a.openPublished(ctx, c, d)
	if err != nil {
		return convert.Result{}, err
	}
	defer func() { err = errors.Join(err, closed()) }()
	config, err := a.restConfig()
	if err != nil {
		return convert.Result{}, err
	}
	user, err := tenant.ForUser(config, tenant.Options{})
	if err != nil {
		return convert.Result{}, err
	}
	read, err := readInputs(ctx, d, user, user, files)
	if err != nil {
		return convert.Result{}, err
	}
	result, err = a.converted(ctx, files, spec.Conversion(d, read.given, convert.Limits{}))
	if err != nil {
		return convert.Result{}, read.scrub.Error(refused(err, false))
	}
	return result, nil
}

// openPublished loads the artifact of a deployment's BundleSource, and checks its digest.
func (a *app) openPublished(ctx context.Context, c *cluster, d *v1alpha1.BundleDeployment) (fs.FS, func() error, error) {
	source, err := c.publishedSource(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	config, err := a.restConfig()
	if err != nil {
		return nil, nil, err
	}
	b, err := a.openArtifact(ctx, config, artifact.SourceOwner(source.Namespace, source.Name), *source.Status.Artifact)
	if err != nil {
		return nil, nil, err
	}
	return b.files, b.close, nil
}

// publishedSource is the BundleSource of a deployment, with an artifact.
func (c *cluster) publishedSource(ctx context.Context, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	if d.SourceName() == "" {
		return nil, fmt.Errorf("the source of %s %s is %s, which Flux fetches, and this command reads BundleSources", deployments.name, d.Name, d.SourceDisplayName())
	}
	found, err := c.get(ctx, target{kind: sources, name: d.SourceName()})
	if err != nil {
		return nil, err
	}
	source, ok := found.(*v1alpha1.BundleSource)
	if !ok || source.Status.Artifact == nil || source.Status.SourcesDigest != source.Spec.SourcesDigest() {
		return nil, fmt.Errorf("the %s %q has not been fetched yet: the command get source %s says why", sources.name, d.SourceName(), d.SourceName())
	}
	return source, nil
}
