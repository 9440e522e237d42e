// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// CatalogStatus is the state of a BundleCatalog. Its JSON form is what status catalog -o json prints.
type CatalogStatus struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Ready     metav1.ConditionStatus `json:"ready"`
	Reason    string                 `json:"reason,omitempty"`
	State     string                 `json:"state"`
	Priority  int32                  `json:"priority"`
	Source    SourcePart             `json:"source"`
	// Content is what is served; nil for nothing.
	Content *v1alpha1.CatalogContent `json:"content,omitempty"`
	// Problems are what is wrong in the content.
	Problems []string `json:"problems,omitempty"`
	URL      string   `json:"url,omitempty"`
	Problem  *Problem `json:"problem,omitempty"`
	Next     []string `json:"next"`

	UpToDate bool `json:"-"` // Ready is True, and about the current spec
}

// NewCatalogStatus builds the state of a catalog.
func NewCatalogStatus(o *v1alpha1.BundleCatalog) CatalogStatus {
	s := Summarize(o)
	status := CatalogStatus{
		Namespace: o.Namespace, Name: o.Name, Ready: metav1.ConditionStatus(s.Readiness()), Reason: s.Reason, State: StateOf(s),
		Priority: o.Spec.Priority, Source: catalogPart(o), Content: o.Status.Content, Problems: o.Status.Problems,
		Next: nextOfCatalog(o, s), UpToDate: s.IsReady(),
	}
	if o.Status.URLs != nil {
		status.URL = o.Status.URLs.Base
	}
	if s.Ready == "" {
		status.Ready = metav1.ConditionUnknown
	}
	if s.Ready == metav1.ConditionFalse {
		status.Problem = &Problem{Step: "Ready", Reason: s.Reason, Message: s.Message, Hint: HintFor(s.Reason)}
	}
	return status
}

// catalogPart is the place that a catalog comes from, and what it resolved to.
func catalogPart(o *v1alpha1.BundleCatalog) SourcePart {
	var part SourcePart
	for _, s := range effective.CatalogSource(&o.Spec).Sources {
		part = SourcePart{From: Upstream(s), Pinned: IsPinned(s)}
	}
	for _, r := range o.Status.Resolved {
		part.Resolved = r.Digest
	}
	return part
}

// nextOfCatalog says what happens next without user action.
func nextOfCatalog(o *v1alpha1.BundleCatalog, s Summary) []string {
	switch {
	case s.Deleting:
		return []string{"It is deleted when nothing holds it any more."}
	case s.Suspended:
		return []string{"Nothing is fetched until spec.suspend is false; what is served stays served."}
	case s.Unseen || s.Ready == "":
		return []string{"The controller reconciles it within seconds; if not, see whether bundle-source-controller runs."}
	case s.Stalled:
		return []string{"Nothing is retried until the source, or what it refers to, is changed."}
	case catalogPart(o).Pinned:
		return []string{"The source is pinned and not checked again."}
	}
	return []string{fmt.Sprintf("The source is checked again every %s.", Short(effective.SourceInterval(effective.CatalogSource(&o.Spec))))}
}
