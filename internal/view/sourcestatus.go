// SPDX-License-Identifier: Apache-2.0

package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// SourceStatus is the state of a BundleSource. Its JSON form is what status source -o json prints.
type SourceStatus struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Ready     metav1.ConditionStatus `json:"ready"`
	Reason    string                 `json:"reason,omitempty"`
	State     string                 `json:"state"`
	Source    SourceNode             `json:"source"`
	Problem   *Problem               `json:"problem,omitempty"`
	// UsedBy are the BundleDeployments of the namespace that install from it.
	UsedBy []string `json:"usedBy"`
	Next   []string `json:"next"`

	UpToDate bool `json:"-"` // Ready is True, and about the current spec
}

// NewSourceStatus builds the state of a source that these deployments use.
func NewSourceStatus(source *v1alpha1.BundleSource, usedBy []string) SourceStatus {
	s := Summarize(source)
	user := &v1alpha1.BundleDeployment{}
	user.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: source.Name}
	status := SourceStatus{
		Namespace: source.Namespace, Name: source.Name, Ready: metav1.ConditionStatus(s.Readiness()), Reason: s.Reason, State: StateOf(s),
		Source: newSourceNode(user, source), UsedBy: append([]string{}, usedBy...), Next: nextOfSource(source, s), UpToDate: s.IsReady(),
	}
	if s.Ready == "" {
		status.Ready = metav1.ConditionUnknown
	}
	if s.Ready == metav1.ConditionFalse {
		status.Source.Trouble = "" // the problem has it, whole
		status.Problem = &Problem{Step: "Ready", Reason: s.Reason, Message: s.Message, Hint: HintFor(s.Reason)}
	}
	return status
}

// nextOfSource says what happens next without user action.
func nextOfSource(source *v1alpha1.BundleSource, s Summary) []string {
	switch {
	case s.Deleting:
		return []string{"It is deleted when nothing holds it any more."}
	case s.Suspended:
		return []string{"Nothing is fetched until spec.suspend is false; the published artifact stays available."}
	case s.Unseen || s.Ready == "":
		return []string{"The controller reconciles it within seconds; if not, see whether bundle-source-controller runs."}
	case s.Stalled:
		return []string{"Nothing is retried until the source, or what it refers to, is changed."}
	}
	return nextSource(source)
}
