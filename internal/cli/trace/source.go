// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// Deployment is the deployment that an object is traced to.
type Deployment struct {
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	Ready     string                  `json:"ready"`
	Revision  string                  `json:"revision,omitempty"`
	Origin    string                  `json:"originRevision,omitempty"`
	Version   string                  `json:"version,omitempty"`
	Digest    string                  `json:"artifactDigest,omitempty"`
	Applied   *metav1.Time            `json:"applied,omitempty"`
	Account   string                  `json:"serviceAccount"`
	Format    string                  `json:"format,omitempty"`
	Package   *v1alpha1.PackageStatus `json:"package,omitempty"`
	// Bundle is the installed bundle of a catalog, with spec.catalog.
	Bundle *v1alpha1.InstalledBundle `json:"bundle,omitempty"`

	bundle string // in words
	state  string
	color  printer.Color
}

// fluxSourceGroup is the API group of the sources of Flux.
const fluxSourceGroup = "source.toolkit.fluxcd.io"

// Source is where the bundle of the deployment comes from.
type Source struct {
	Kind      string     `json:"kind"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Revision  string     `json:"revision,omitempty"` // published now
	Current   bool       `json:"current"`            // the published revision is applied, so digests and signers are those of it
	Suspended bool       `json:"suspended,omitempty"`
	Upstreams []Upstream `json:"upstreams"`
}

// Upstream is a place that files were fetched from.
type Upstream struct {
	From        string `json:"from"`
	Destination string `json:"destination,omitempty"`
	Reference   string `json:"reference,omitempty"`
	Digest      string `json:"digest,omitempty"`
	Signer      string `json:"signer,omitempty"`
	Demanded    bool   `json:"signatureDemanded"`
}

// NewTraceDeployment is what trace shows of a deployment.
func NewTraceDeployment(d *v1alpha1.BundleDeployment) *Deployment {
	s := view.Summarize(d)
	found := &Deployment{Namespace: d.Namespace, Name: d.Name, Ready: s.Readiness(), Revision: s.Revision, Origin: s.Origin, Version: s.Version,
		Digest: appliedRecord(d).Digest, Applied: d.Status.Applied.CompletionTime, Account: d.Spec.ServiceAccountName,
		Format: string(d.Status.Format), Package: d.Status.Healthy.Package, bundle: view.BundleText(d), state: view.StateOf(s), color: printer.SummaryColor(s)}
	if d.Status.Catalog != nil {
		found.Bundle = d.Status.Catalog.Installed
	}
	if kept := d.Status.Internal.Artifact; found.Digest == "" && kept != nil && kept.Revision == found.Revision {
		found.Digest = kept.Digest
	}
	return found
}

// appliedRecord is the record of the applied revision in the history; the zero record if there is none.
func appliedRecord(d *v1alpha1.BundleDeployment) v1alpha1.RevisionRecord {
	for _, record := range d.Status.History {
		if record.Revision == d.Status.Applied.Revision && record.Digest != "" {
			return record
		}
	}
	return v1alpha1.RevisionRecord{}
}

// sourceOf reads the source of a deployment; nil if it is gone or may not be read, which is noted.
func (c *Climber) sourceOf(ctx context.Context, d *v1alpha1.BundleDeployment) *Source {
	if effective.SourceName(d) == "" {
		return c.fluxSourceOf(ctx, d)
	}
	there := *c.Cluster
	there.Namespace = d.Namespace
	read, err := there.Get(ctx, kit.Target{Kind: kit.Sources, Name: effective.SourceName(d)})
	var missing *kit.NotFoundError
	switch {
	case errors.As(err, &missing):
		c.Result.Notes = append(c.Result.Notes, fmt.Sprintf("its BundleSource %s does not exist, so digests and signer are unknown", effective.SourceName(d)))
		return nil
	case err != nil:
		c.Unreadable("get", v1alpha1.GroupVersion.WithResource(kit.Sources.Resource), d.Namespace, errors.Unwrap(err))
		return nil
	}
	source := read.(*v1alpha1.BundleSource) //nolint:errcheck,forcetypeassert // the kind makes no other
	found := &Source{Kind: v1alpha1.BundleSourceKind, Namespace: d.Namespace, Name: source.Name, Suspended: source.Spec.Suspend}
	c.settleCurrent(found, d, source.Status.Artifact)
	recorded := appliedRecord(d).Sources
	for _, s := range source.Spec.Sources {
		up := Upstream{From: view.Upstream(s), Destination: s.Destination, Demanded: demandsSignature(s)}
		for _, r := range source.Status.Resolved {
			if r.Destination == s.Destination && found.Current {
				up.Reference = r.Reference
				up.Digest = r.Digest
				up.Signer = r.VerifiedBy
			}
		}
		for _, r := range recorded {
			if r.Destination == s.Destination && !found.Current {
				up.From = upstreamBefore(r)
				up.Reference = r.Reference
				up.Digest = r.Digest
				up.Signer = r.VerifiedBy
			}
		}
		found.Upstreams = append(found.Upstreams, up)
	}
	return found
}

// upstreamBefore says where a part of an earlier revision was fetched from.
func upstreamBefore(o v1alpha1.RevisionOrigin) string {
	switch {
	case o.Image != "":
		return "image " + o.Image
	case o.Git != "":
		return "git " + o.Git
	case o.URL != "":
		return "archive " + o.URL
	case o.Helm != "":
		return "chart " + o.Chart + " of " + o.Helm
	}
	return "ConfigMap " + o.ConfigMap
}

// settleCurrent compares the published revision of a source with the applied one.
func (c *Climber) settleCurrent(found *Source, d *v1alpha1.BundleDeployment, artifact *meta.Artifact) {
	if artifact == nil && len(appliedRecord(d).Sources) > 0 {
		return
	}
	if artifact == nil {
		c.Result.Notes = append(c.Result.Notes, "the source publishes nothing now, so digests and signer of the applied revision are unknown")
		return
	}
	found.Revision = artifact.Revision
	found.Current = artifact.Revision == d.Status.Applied.Revision
	switch {
	case !found.Current && len(appliedRecord(d).Sources) > 0:
		c.Result.Notes = append(c.Result.Notes, fmt.Sprintf("the source publishes revision %s now; the upstream data is that of the applied one", artifact.Revision))
	case !found.Current:
		c.Result.Notes = append(c.Result.Notes, fmt.Sprintf("the source publishes revision %s now, so the upstream digest and the signer of the applied revision are unknown", artifact.Revision))
	case c.Result.Deployment.Digest == "":
		c.Result.Deployment.Digest = artifact.Digest
	}
}

func demandsSignature(s v1alpha1.Source) bool {
	return s.Image != nil && s.Image.Verify != nil || s.Git != nil && s.Git.Verify != nil || s.HTTP != nil && s.HTTP.Verify != nil
}

// fluxSourceOf reads a source of Flux, and the result of its own verification.
func (c *Climber) fluxSourceOf(ctx context.Context, d *v1alpha1.BundleDeployment) *Source {
	ref := d.Spec.SourceRef
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	found := &Source{Kind: kind.Kind, Namespace: d.Namespace, Name: ref.Name}
	body := c.readBody(ctx, kind, d.Namespace, ref.Name, "from which it is installed")
	if body == nil {
		return found
	}
	found.Suspended = isSuspended(body)
	var artifact *meta.Artifact
	if revision := textOf(body, "status", "artifact", "revision"); revision != "" {
		artifact = &meta.Artifact{Revision: revision, Digest: textOf(body, "status", "artifact", "digest")}
	}
	c.settleCurrent(found, d, artifact)
	up := Upstream{From: kind.Kind + " " + textOf(body, "spec", "url")}
	_, up.Demanded, _ = unstructured.NestedMap(body.Object, "spec", "verify")
	if found.Current {
		up.Digest = artifact.Revision
		up.Signer = verifiedByFlux(body)
	}
	found.Upstreams = []Upstream{up}
	return found
}

// verifiedByFlux is what the condition SourceVerified of a source of Flux says while it is True.
func verifiedByFlux(source *unstructured.Unstructured) string {
	verified := conditionOf(source, v1alpha1.SourceVerifiedCondition)
	if verified["status"] != string(metav1.ConditionTrue) {
		return ""
	}
	message, _ := verified["message"].(string)
	return message
}
