// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// demand is the approval that the spec and the namespace of a deployment require for a plan.
type demand struct {
	// mode that applies: that of the spec, or a stricter one.
	mode v1alpha1.ApprovalMode
	// because says why every plan needs an approval; empty if not every plan does.
	because []string
	// grounds is the digest of what the plan is made of; empty if unknown.
	grounds string
}

// demandOn decides which mode applies. In a namespace that requires approval it does not rely on the
// admission policy, which may not be, or not have been, installed:
//
//	the namespace requires nothing          the mode of the spec
//	Manual                                 Manual
//	nothing was approved yet               OnEscalation, and the plan waits in any case
//	OnEscalation                           OnEscalation
//	Automatic, as it was approved          Automatic
//	Automatic                              OnEscalation, and the plan waits in any case
func (r *Reconciler) demandOn(ctx context.Context, s *state, record *v1alpha1.ExecutedPlan) (demand, error) {
	d := demand{mode: s.object.Spec.ApprovalModeOrDefault(), grounds: s.grounds()}
	required, err := r.labels.Required(ctx, r.APIReader, s.object.Namespace)
	if err != nil || !required.Approval || d.mode == v1alpha1.ApprovalManual {
		return d, err
	}
	label := v1alpha1.RequireApprovalLabel + "=" + v1alpha1.RequireApproval
	switch automatic := d.mode == v1alpha1.ApprovalAutomatic; {
	case record == nil:
		d.because = []string{"no plan of this BundleDeployment was approved yet, and its namespace has the label " + label}
	case automatic && (d.grounds == "" || record.Grounds != d.grounds):
		d.because = []string{"the mode Automatic was not approved for the current spec, source and inputs, and the namespace has the label " + label}
	case automatic:
		return d, nil
	}
	d.mode = v1alpha1.ApprovalOnEscalation
	return d, nil
}

// grounds is the digest of what users of the namespace control of a plan: the spec without its intervals,
// the spec of the source, and the contents of the inputs.
func (s *state) grounds() string {
	if s.resolved.source == nil || s.resolved.source.grounds == "" {
		return ""
	}
	spec := s.object.Spec.DeepCopy()
	spec.Suspend, spec.Source = false, nil
	spec.Interval, spec.RetryInterval = v1alpha1.Duration{}, v1alpha1.Duration{}
	return digestOfAll("satchel.dev/grounds/v1", spec, s.resolved.source.grounds, s.resolved.inputs.digest)
}

// groundsOf is the digest of the spec of a source without its intervals. It includes what users of the namespace change
// outside the spec: a ConfigMap or an upload by its revision, and the Secrets with the keys and policies for signatures
// by the trust digest in the status.
func groundsOf(source *v1alpha1.BundleSource) string {
	spec, content := source.Spec.DeepCopy(), ""
	var trust []string
	for _, resolved := range source.Status.Resolved {
		if resolved.Trust != "" {
			trust = append(trust, resolved.Trust)
		}
	}
	spec.Suspend, spec.Interval, spec.Timeout = false, v1alpha1.Duration{}, v1alpha1.Duration{}
	spec.ExternalArtifact, spec.Immutable = false, false
	for _, part := range spec.Sources {
		if (part.ConfigMap != nil || part.Upload != nil) && source.Status.Artifact != nil {
			content = source.Status.Artifact.Revision
		}
	}
	return digestOfAll("satchel.dev/source-grounds/v1", source.Name, spec, content, trust)
}

// fluxGrounds is the digest of the spec of a Flux source; empty while its artifact may belong to another spec.
func fluxGrounds(source fluxObject) string {
	ready := conditions.Get(source, meta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != source.GetGeneration() {
		return ""
	}
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	data, err := json.Marshal(source)
	if err != nil || json.Unmarshal(data, &object) != nil {
		return ""
	}
	delete(object.Spec, "interval")
	delete(object.Spec, "timeout")
	delete(object.Spec, "suspend")
	return digestOfAll("satchel.dev/source-grounds/v1", source.GetName(), object.Spec)
}

// digestOfAll digests values as JSON; empty if one cannot be encoded, which does not happen for API types.
func digestOfAll(values ...any) string {
	data, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
