// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// Catalog is the result of the step catalog: the bundle that spec.catalog resolved to. What it is, is in the status.
type Catalog struct {
	// Problem is why the package cannot be resolved now; nil if it can. What it resolved to before stays.
	Problem *failure.Error
	// Source is the spec of the BundleSource with the bundle, and Annotations are its annotations.
	Source      v1alpha1.BundleSourceSpec
	Annotations map[string]string
	// Pinned: the digest of the image is known. Without it no plan is made.
	Pinned bool
	// Head says in words where the plan goes.
	Head string
	// Escalations are what in that needs an approval in the mode OnEscalation.
	Escalations []string
}

// MarkInstalled records which bundle is installed, when the plan of the revision begins to be executed.
func (r *Resolved) MarkInstalled(of *Subject) {
	status := of.Object.Status.Catalog
	if status == nil || of.Keeping || r.Artifact == nil || r.Catalog == nil {
		return
	}
	if r.Rejected != nil {
		if kept := of.Object.Status.Internal.Artifact; kept != nil && kept.Bundle != nil {
			status.Installed = kept.Bundle.DeepCopy()
		}
		return
	}
	if to := status.Resolved; to != nil && r.Catalog.Pinned {
		status.Installed = &v1alpha1.InstalledBundle{
			Bundle: to.Bundle, Version: FullVersion(to), Image: to.Image, Channels: to.Channels, Revision: r.Revision(),
		}
		if to.Catalog != "" {
			status.Installed.Catalog = CatalogName(of.Object, to)
		}
	}
}

// Head says where the plan goes; "" without spec.catalog.
func (r *Resolved) Head() string {
	if r.Catalog == nil || r.Rejected != nil {
		return ""
	}
	return r.Catalog.Head
}

// FullVersion is the version of a bundle with its release.
func FullVersion(of *v1alpha1.ResolvedBundle) string {
	if of.Release == "" {
		return of.Version
	}
	return of.Version + "+" + of.Release
}

// CatalogName is the BundleCatalog of a bundle, as namespace/name.
func CatalogName(d *v1alpha1.BundleDeployment, of *v1alpha1.ResolvedBundle) string {
	switch {
	case of.Catalog == "":
		return ""
	case of.CatalogNamespace != "":
		return of.CatalogNamespace + "/" + of.Catalog
	}
	return d.Namespace + "/" + of.Catalog
}

// PlanSummary is a plan in words, with where it goes.
func (r *Resolved) PlanSummary(summary string) string {
	if head := r.Head(); head != "" {
		return head + ": " + summary
	}
	return summary
}

// InstalledBundle is a copy of the installed bundle of a catalog; nil without spec.catalog.
func InstalledBundle(d *v1alpha1.BundleDeployment) *v1alpha1.InstalledBundle {
	if d.Status.Catalog == nil {
		return nil
	}
	return d.Status.Catalog.Installed.DeepCopy()
}

// RecordBundle names the bundle of a revision in its record in the history.
func (r *Resolved) RecordBundle(d *v1alpha1.BundleDeployment, record *v1alpha1.RevisionRecord) {
	if r.Catalog == nil || d.Status.Catalog == nil || d.Status.Catalog.Resolved == nil {
		return
	}
	to := d.Status.Catalog.Resolved
	record.Bundle = to.Bundle
	record.Channels = to.Channels
	record.Catalog = CatalogName(d, to)
}

// SetCatalogConditions sets Resolved and Deprecated of a deployment with spec.catalog. If the step failed, its failure is set as for
// any step.
func (r *Resolved) SetCatalogConditions(d *v1alpha1.BundleDeployment) {
	status := d.Status.Catalog
	switch {
	case d.Spec.Catalog == nil:
		conditions.Delete(d, v1alpha1.ResolvedCondition)
	case r.Catalog == nil || status == nil || status.Resolved == nil:
	case r.Catalog.Problem != nil:
		pipeline.SetCondition(d, v1alpha1.ResolvedCondition, metav1.ConditionFalse, r.Catalog.Problem.Reason,
			r.Catalog.Problem.Error()+"\nbundle "+status.Resolved.Bundle+" stays, as it was resolved before")
	default:
		pipeline.SetCondition(d, v1alpha1.ResolvedCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, resolvedText(d))
	}
	if status == nil || len(status.Deprecations) == 0 {
		conditions.Delete(d, v1alpha1.DeprecatedCondition)
		return
	}
	lines := make([]string, 0, len(status.Deprecations))
	for _, one := range status.Deprecations {
		lines = append(lines, strings.TrimSpace(strings.ToLower(one.Scope)+" "+one.Name)+": "+one.Message)
	}
	pipeline.SetCondition(d, v1alpha1.DeprecatedCondition, metav1.ConditionTrue, v1alpha1.ReasonDeprecated, strings.Join(lines, "\n"))
}

// resolvedText says what the package resolved to, and what the newest bundle is.
func resolvedText(d *v1alpha1.BundleDeployment) string {
	status := d.Status.Catalog
	text := fmt.Sprintf("bundle %s, version %s", status.Resolved.Bundle, FullVersion(status.Resolved))
	if status.Resolved.Catalog != "" {
		text += ", of catalog " + CatalogName(d, status.Resolved)
	}
	if len(status.Resolved.Channels) > 0 {
		text += ", channel " + strings.Join(status.Resolved.Channels, " ")
	}
	if newest := status.Newest; newest != nil {
		text += fmt.Sprintf("; the newest is %s: %s", newest.Bundle, newest.Because)
	}
	return text
}
