// SPDX-License-Identifier: Apache-2.0

package bundle

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
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// Published is an artifact that a source has published.
type Published struct {
	Owner    artifact.Owner
	Artifact meta.Artifact
	Origin   string // the origin revision; empty where it is unknown
	Note     string // what is not current about it; empty if it is current
}

// NotPublishedError says that a source does not exist, or has published nothing yet.
type NotPublishedError struct{ message string }

// Error implements error.
func (e *NotPublishedError) Error() string { return e.message }

func notPublished(format string, args ...any) error {
	return &NotPublishedError{message: fmt.Sprintf(format, args...)}
}

// PublishedBy is the current artifact of a BundleSource.
func PublishedBy(source *v1alpha1.BundleSource) (Published, error) {
	if source.Status.Artifact == nil {
		return Published{}, notPublished("BundleSource %s/%s has no artifact yet: see satchel status source %s", source.Namespace, source.Name, source.Name)
	}
	p := Published{Owner: artifact.SourceOwner(source.Namespace, source.Name), Artifact: *source.Status.Artifact, Origin: source.Status.OriginRevision}
	if source.Status.SourcesDigest != effective.SourcesDigest(&source.Spec) {
		p.Note = "the source was changed and has not been fetched again: this is its last artifact"
	}
	return p, nil
}

// PublishedFor is the current artifact of the source of a deployment. The user reads sources of Flux.
func PublishedFor(ctx context.Context, c *kit.Cluster, user *tenant.Client, d *v1alpha1.BundleDeployment) (Published, error) {
	if ref := d.Spec.SourceRef; ref != nil && effective.IsFlux(ref) {
		return publishedByFlux(ctx, user, d.Namespace, ref)
	}
	name := effective.SourceName(d)
	var source v1alpha1.BundleSource
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, &source)
	switch {
	case kit.IsObjectNotFound(err):
		return Published{}, notPublished("there is no BundleSource %s/%s yet", d.Namespace, name)
	case err != nil:
		return Published{}, &kit.AccessError{Verb: "get", Resource: kit.Sources.Resource, Namespace: d.Namespace, Err: err}
	case source.Status.Artifact == nil:
		return Published{}, notPublished("BundleSource %s/%s has no artifact yet: see satchel status %s", source.Namespace, name, d.Name)
	}
	p, err := PublishedBy(&source)
	if d.Spec.Source != nil && effective.SourcesDigest(d.Spec.Source) != effective.SourcesDigest(&source.Spec) {
		p.Note = "the source was changed and has not been fetched again: this is its last artifact"
	}
	return p, err
}

// publishedByFlux is the artifact of a source of Flux.
func publishedByFlux(ctx context.Context, user *tenant.Client, namespace string, ref *v1alpha1.SourceReference) (Published, error) {
	named := fmt.Sprintf("%s %s/%s", ref.Kind, namespace, ref.Name)
	served, err := user.Kinds().Find(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	var object *unstructured.Unstructured
	if err == nil {
		object, err = user.Get(ctx, tenant.Ref{Resource: served.Resource, Namespace: namespace, Name: ref.Name})
	}
	switch {
	case apierrors.IsNotFound(err):
		return Published{}, fmt.Errorf("%s does not exist: create it, or correct spec.sourceRef.name", named)
	case err != nil:
		return Published{}, fmt.Errorf("reading %s: %w", named, err)
	}
	var status struct {
		Status struct {
			Artifact *meta.Artifact `json:"artifact"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status); err != nil {
		return Published{}, fmt.Errorf("reading %s: %w", named, err)
	}
	if status.Status.Artifact == nil {
		return Published{}, notPublished("%s has no artifact yet", named)
	}
	return Published{Owner: artifact.Owner{Kind: strings.ToLower(ref.Kind), Namespace: namespace, Name: ref.Name}, Artifact: *status.Status.Artifact}, nil
}

// At is the artifact of a revision in the history of a deployment.
func (p Published) At(d *v1alpha1.BundleDeployment, revision string) (Published, error) {
	record, err := view.FindRevision(d, p.Artifact.Revision, revision)
	if err != nil {
		return Published{}, err
	}
	earlier := Published{Owner: p.Owner, Origin: record.OriginRevision}
	kept := d.Status.Internal.Artifact
	switch {
	case record.Revision == p.Artifact.Revision:
		earlier.Artifact = p.Artifact
	case kept != nil && kept.Revision == record.Revision:
		earlier.Artifact = meta.Artifact{URL: kept.URL, Revision: kept.Revision, Digest: kept.Digest}
	case record.Digest == "" || p.urlOf(record.Revision) == "":
		return Published{}, fmt.Errorf("the location of the artifact of revision %s is unknown: only the current artifact of the source and the last healthy one can be read",
			view.ShortRevision(record.Revision))
	default:
		earlier.Artifact = meta.Artifact{URL: p.urlOf(record.Revision), Revision: record.Revision, Digest: record.Digest}
	}
	return earlier, nil
}

// urlOf is the URL of the artifact of a revision of a BundleSource, if it is still stored; empty for other kinds of sources.
func (p Published) urlOf(revision string) string {
	_, digest, found := strings.Cut(artifact.Identity(revision), ":")
	if !found || p.Owner.Kind != artifact.SourceKind {
		return ""
	}
	return p.Artifact.URL[:strings.LastIndexByte(p.Artifact.URL, '/')+1] + digest + artifact.ArchiveSuffix
}
