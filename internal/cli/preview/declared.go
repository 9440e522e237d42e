// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"io/fs"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// declare reads the deployment from the files of -f. If it exists on the cluster, its status says what is applied.
func (p *Previewer) declare(ctx context.Context, t kit.Target) (err error) {
	if p.declared, err = bundle.ReadDeclared(ctx, p.app, p.options.files, t.Name, p.cluster.Namespace); err != nil {
		return err
	}
	p.Deployment = p.declared.Deployment.DeepCopy()
	p.cluster.Namespace = p.Deployment.Namespace
	live, err := p.cluster.Deployment(ctx, kit.Target{Kind: kit.Deployments, Name: p.Deployment.Name})
	var missing *kit.NotFoundError
	switch {
	case errors.As(err, &missing):
		p.note("BundleDeployment %s/%s does not exist yet: this is what it would do first", p.Deployment.Namespace, p.Deployment.Name)
		return nil
	case err != nil:
		return err
	}
	p.Deployment.UID, p.Deployment.Generation = live.UID, live.Generation
	p.Deployment.DeletionTimestamp = live.DeletionTimestamp
	p.Deployment.Status = live.Status
	if !equality.Semantic.DeepEqual(&p.Deployment.Spec, &live.Spec) {
		p.Deployment.Generation++ // so that nothing in the status counts as observed for this spec
	}
	return nil
}

// fromHere opens the source of -f, unless the cluster has its artifact; nil then, or without -f.
func (p *Previewer) fromHere(ctx context.Context) (*bundle.Bundle, error) {
	if p.declared == nil || p.options.revision != "" {
		return nil, nil //nolint:nilnil // the artifact of the cluster is meant
	}
	source, err := p.declared.Set.Source(ctx, p.Deployment)
	if err != nil || source == nil {
		return nil, err
	}
	var live v1alpha1.BundleSource
	err = p.cluster.Client.Get(ctx, client.ObjectKey{Namespace: p.Deployment.Namespace, Name: effective.SourceName(p.Deployment)}, &live)
	switch wanted := effective.SourcesDigest(source); {
	case err != nil && !kit.IsObjectNotFound(err):
		return nil, &kit.AccessError{Verb: "get", Resource: kit.Sources.Resource, Namespace: p.Deployment.Namespace, Err: err}
	case err == nil && live.Status.Artifact != nil && live.Status.SourcesDigest == wanted && effective.SourcesDigest(&live.Spec) == wanted:
		return nil, nil //nolint:nilnil // the cluster has it
	}
	p.note("the source was fetched from here, because the cluster has no artifact of it")
	return bundle.OpenSource(ctx, p.app, source, credentials.NewSecrets(p.declared.Set.Reader(p.ask), p.Deployment.Namespace), p.options.ImagePolicies)
}

// ask reads an object that the files lack from the cluster.
func (p *Previewer) ask(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	found, err := p.User.Get(ctx, tenant.Ref{Resource: kit.CoreResource(kind), Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	return found, err
}

// inputs reads the values that the spec refers to: from the files of -f, or else from the cluster.
func (p *Previewer) inputs(ctx context.Context, files fs.FS) (bundle.InputsRead, error) {
	held := spec.Contents{}
	if p.declared != nil {
		var err error
		if held, err = p.declared.Set.Contents(p.Deployment); err != nil {
			return bundle.InputsRead{}, err
		}
	}
	return bundle.ReadInputs(ctx, p.Deployment, held, p.User, p.Target, files)
}
