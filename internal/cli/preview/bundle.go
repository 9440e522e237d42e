// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// offered is the artifact that the source of a deployment offers.
type offered struct {
	owner    artifact.Owner
	artifact meta.Artifact
	note     string // what is not current about it
}

// bundle opens what is previewed: a folder, an image, a revision of the history, or else the current artifact of the source.
func (p *Previewer) bundle(ctx context.Context) (b *bundle.Bundle, err error) {
	switch {
	case p.options.Path != "":
		return bundle.OpenFolderBundle(p.options.Path)
	case p.options.image != "":
		return bundle.OpenImageBundle(ctx, p.app, p.options.image, p.options.OpenOptions)
	}
	if b, err := p.fromHere(ctx); b != nil || err != nil {
		return b, err
	}
	source, err := p.source(ctx)
	if err != nil {
		return nil, err
	}
	if p.options.revision != "" {
		if source.artifact, err = p.earlier(source); err != nil {
			return nil, err
		}
		source.note = ""
	}
	p.note("%s", source.note)
	p.Out.Revision, p.Out.Artifact = source.artifact.Revision, source.artifact.Digest
	if b, err = bundle.OpenArtifact(ctx, p.app, p.Config, source.owner, source.artifact); err != nil {
		return nil, fmt.Errorf("%w\nwithout the artifact, a folder or an image can be previewed in its place: --path DIR, --image REF", err)
	}
	return b, nil
}

// source reads the artifact of the deployment's source.
func (p *Previewer) source(ctx context.Context) (offered, error) {
	if ref := p.Deployment.Spec.SourceRef; ref != nil && effective.IsFlux(ref) {
		return p.fluxSource(ctx, ref)
	}
	name := effective.SourceName(p.Deployment)
	var source v1alpha1.BundleSource
	err := p.cluster.Client.Get(ctx, client.ObjectKey{Namespace: p.Deployment.Namespace, Name: name}, &source)
	switch {
	case kit.IsObjectNotFound(err):
		return offered{}, fmt.Errorf("there is no BundleSource %s/%s yet; a folder or an image can be previewed in its place: --path DIR, --image REF",
			p.Deployment.Namespace, name)
	case err != nil:
		return offered{}, &kit.AccessError{Verb: "get", Resource: kit.Sources.Resource, Namespace: p.Deployment.Namespace, Err: err}
	case source.Status.Artifact == nil:
		return offered{}, fmt.Errorf("BundleSource %s/%s has no artifact yet: see satchel status %s", source.Namespace, name, p.Deployment.Name)
	}
	found := offered{owner: artifact.SourceOwner(source.Namespace, name), artifact: *source.Status.Artifact}
	current := p.Deployment.Spec.Source == nil || effective.SourcesDigest(p.Deployment.Spec.Source) == effective.SourcesDigest(&source.Spec)
	if !current || source.Status.SourcesDigest != effective.SourcesDigest(&source.Spec) {
		found.note = "the source was changed and has not been fetched again: this is its last artifact"
	}
	return found, nil
}

// fluxSource reads the artifact of a source of Flux.
func (p *Previewer) fluxSource(ctx context.Context, ref *v1alpha1.SourceReference) (offered, error) {
	kind := strings.ToLower(ref.Kind)
	named := fmt.Sprintf("%s %s/%s", ref.Kind, p.Deployment.Namespace, ref.Name)
	served, err := p.User.Kinds().Find(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	var object *unstructured.Unstructured
	if err == nil {
		object, err = p.User.Get(ctx, tenant.Ref{Resource: served.Resource, Namespace: p.Deployment.Namespace, Name: ref.Name})
	}
	switch {
	case apierrors.IsNotFound(err):
		return offered{}, fmt.Errorf("%s does not exist: create it, or correct spec.sourceRef.name", named)
	case err != nil:
		return offered{}, fmt.Errorf("reading %s: %w", named, err)
	}
	var status struct {
		Status struct {
			Artifact *meta.Artifact `json:"artifact"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status); err != nil {
		return offered{}, fmt.Errorf("reading %s: %w", named, err)
	}
	if status.Status.Artifact == nil {
		return offered{}, fmt.Errorf("%s has no artifact yet", named)
	}
	return offered{owner: artifact.Owner{Kind: kind, Namespace: p.Deployment.Namespace, Name: ref.Name}, artifact: *status.Status.Artifact}, nil
}

// earlier is the artifact of a revision in the history of the deployment.
func (p *Previewer) earlier(source offered) (meta.Artifact, error) {
	d := p.Deployment
	record, err := view.FindRevision(d, source.artifact.Revision, p.options.revision)
	if err != nil {
		return meta.Artifact{}, err
	}
	kept := d.Status.LastHealthyArtifact
	switch {
	case record.Revision == source.artifact.Revision:
		return source.artifact, nil
	case kept != nil && kept.Revision == record.Revision:
		return meta.Artifact{URL: kept.URL, Revision: kept.Revision, Digest: kept.Digest}, nil
	case record.Digest == "" || urlOf(source, record.Revision) == "":
		return meta.Artifact{}, fmt.Errorf("the location of the artifact of revision %s is unknown: only the current artifact of the source and the last healthy one can be previewed",
			view.ShortRevision(record.Revision))
	}
	return meta.Artifact{URL: urlOf(source, record.Revision), Revision: record.Revision, Digest: record.Digest}, nil
}

// urlOf is the URL of the artifact of a revision of a BundleSource, if it is still stored; empty for other kinds of sources.
func urlOf(source offered, revision string) string {
	_, digest, found := strings.Cut(artifact.Identity(revision), ":")
	if !found || source.owner != artifact.SourceOwner(source.owner.Namespace, source.owner.Name) {
		return ""
	}
	return source.artifact.URL[:strings.LastIndexByte(source.artifact.URL, '/')+1] + digest + ".tar.gz"
}
