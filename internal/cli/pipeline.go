// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// pipeline is the state of a BundleDeployment, step by step. Its JSON form is what status -o json prints.
type pipeline struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Ready     metav1.ConditionStatus `json:"ready"`
	Reason    string                 `json:"reason,omitempty"`
	State     string                 `json:"state"`
	Revision  string                 `json:"revision,omitempty"`
	// Package is the OLM package of the revision; CertificateExpirationTime is when the first certificate of its webhooks ends.
	Package                   *v1alpha1.PackageStatus `json:"package,omitempty"`
	CertificateExpirationTime *metav1.Time            `json:"certificateExpirationTime,omitempty"`

	Source   sourceNode `json:"source"`
	Steps    []stepNode `json:"steps"`
	Problem  *problem   `json:"problem,omitempty"`
	Approval *consent   `json:"approval,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
	Next     []string   `json:"next"`

	upToDate bool // Ready is True, and about the current spec
}

// sourceNode is where the bundle comes from.
type sourceNode struct {
	Name     string       `json:"name"`
	Inline   bool         `json:"inline"`
	Exists   bool         `json:"exists"`
	Ready    string       `json:"ready,omitempty"`
	Parts    []sourcePart `json:"parts,omitempty"`
	Revision string       `json:"revision,omitempty"`
	Updated  *metav1.Time `json:"updated,omitempty"`
	Trouble  string       `json:"trouble,omitempty"` // why it cannot be fetched again
}

// sourcePart is one of the places that a source takes files from, and what it resolved to.
type sourcePart struct {
	From        string `json:"from"`
	Destination string `json:"destination,omitempty"`
	Resolved    string `json:"resolved,omitempty"`
	Pinned      bool   `json:"pinned"`
}

// stepState says how far a step is.
type stepState string

const (
	stepDone    stepState = "Done"
	stepFailed  stepState = "Failed"
	stepWorking stepState = "Working"
	stepWaiting stepState = "Waiting" // for the steps before it
)

// stepNode is one step of the pipeline.
type stepNode struct {
	Name   string       `json:"name"`
	State  stepState    `json:"state"`
	Reason string       `json:"reason,omitempty"`
	Detail string       `json:"detail,omitempty"`
	Since  *metav1.Time `json:"since,omitempty"`
}

// problem is the first step that failed, and what to do about it.
type problem struct {
	Step    string `json:"step"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// steps are the conditions of a deployment in the order of the pipeline.
var steps = []struct {
	condition string
	detail    func(*v1alpha1.BundleDeployment, time.Time) string
}{
	{v1alpha1.SourceReadyCondition, attempted},
	{v1alpha1.ConvertedCondition, converted},
	{v1alpha1.PlannedCondition, planned},
	{v1alpha1.AppliedCondition, applied},
	{v1alpha1.HealthyCondition, healthy},
}

// newPipeline builds the state of a deployment; source is nil when it does not exist, and program is
// the name under which the user runs this program.
func newPipeline(d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource, program string, now time.Time) pipeline {
	s := summarize(d)
	p := pipeline{
		Namespace: d.Namespace, Name: d.Name, Ready: metav1.ConditionStatus(s.readiness()), Reason: s.reason,
		State: stateOf(s), Revision: d.Status.LastAppliedRevision, Source: newSourceNode(d, source), Warnings: d.Status.Warnings,
		Package: d.Status.Package, CertificateExpirationTime: d.Status.CertificateExpirationTime, upToDate: s.isReady(),
	}
	if s.ready == "" {
		p.Ready = metav1.ConditionUnknown
	}
	for _, step := range steps {
		node := newStep(d, step.condition)
		if node.State == stepDone {
			node.Detail = step.detail(d, now)
		}
		p.Steps = append(p.Steps, node)
	}
	p.Steps = append(p.Steps, newReadyStep(d, s))
	settleSource(&p.Steps[0], source)
	// A source that cannot be fetched again blocks nothing while its last artifact exists.
	first := 0
	if source != nil && source.Status.Artifact != nil {
		first = 1
	}
	markPrevious(p.Steps[first:len(steps)])
	p.Problem = findProblem(p, first, source)
	p.Approval = newConsent(d, program)
	p.Next = append(nextUp(d, source, s), nextCertificates(d, s, now)...)
	return p
}

// stateOf is the state in one word or two.
func stateOf(s summary) string {
	switch {
	case s.deleting:
		return "being deleted"
	case s.ready == "":
		return "not seen by the controller yet"
	case s.unseen:
		return "changed, and the controller has not seen it yet"
	case s.isReady() && s.suspended:
		return "Ready, suspended"
	case s.isReady() && s.consent != "":
		return "Ready, " + s.consent
	case s.isReady():
		return "Ready"
	case s.suspended:
		return "not Ready, suspended"
	case s.inProgress():
		return "in progress"
	}
	return "not Ready"
}

// newStep reads one condition. A step with a reason of progress is working, whatever its status.
func newStep(d *v1alpha1.BundleDeployment, kind string) stepNode {
	c := apimeta.FindStatusCondition(d.Status.Conditions, kind)
	if c == nil {
		return stepNode{Name: kind, State: stepWaiting}
	}
	node := stepNode{Name: kind, Reason: c.Reason, Detail: c.Message, Since: &c.LastTransitionTime}
	switch {
	case c.Status == metav1.ConditionTrue:
		node.State = stepDone
	case c.Status == metav1.ConditionUnknown || isProgress(c.Reason):
		node.State = stepWorking
	default:
		node.State = stepFailed
	}
	return node
}

// newReadyStep reads Ready, and ignores it if it is about an older spec.
func newReadyStep(d *v1alpha1.BundleDeployment, s summary) stepNode {
	node := newStep(d, v1alpha1.ReadyCondition)
	if s.unseen && node.State != stepWaiting {
		node.State, node.Reason, node.Detail = stepWorking, "", "this is about the spec before the last change"
	}
	return node
}

// markPrevious changes the steps after the first one that failed: they describe the previous revision.
func markPrevious(nodes []stepNode) {
	failed := false
	for i := range nodes {
		node := &nodes[i]
		switch {
		case failed && node.State == stepDone && node.Name == v1alpha1.PlannedCondition:
			*node = stepNode{Name: node.Name, State: stepWaiting}
		case failed && node.State == stepDone && node.Detail != "":
			node.Detail = "still " + node.Detail
		case node.State == stepFailed:
			failed = true
		}
	}
}

func isProgress(reason string) bool {
	switch reason {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonHealthProgressing, v1alpha1.ReasonRemoving:
		return true
	}
	return false
}

// settleSource tells a source that is still being fetched for the first time from one that fails.
func settleSource(step *stepNode, source *v1alpha1.BundleSource) {
	if step.State == stepFailed && step.Reason == v1alpha1.ReasonSourceNotReady && source != nil && summarize(source).inProgress() {
		step.State = stepWorking
	}
}

// findProblem returns the first step that failed, from the given one on; only when there is none, those before count.
// For the source step it uses the source's own message.
func findProblem(p pipeline, first int, source *v1alpha1.BundleSource) *problem {
	failed := func(step stepNode) bool { return step.State == stepFailed }
	ready := len(p.Steps) - 1
	at := slices.IndexFunc(p.Steps[first:], failed) + first
	if at < first || at == ready && p.Steps[0].Reason == p.Steps[ready].Reason {
		at = slices.IndexFunc(p.Steps, failed)
	}
	if at < 0 {
		return nil
	}
	step := p.Steps[at]
	found := &problem{Step: step.Name, Reason: step.Reason, Message: step.Detail}
	if step.Reason == v1alpha1.ReasonSourceNotReady && source != nil {
		if s := summarize(source); s.ready == metav1.ConditionFalse {
			found.Reason, found.Message = s.reason, s.message
		}
	}
	found.Hint = hintFor(found.Reason)
	return found
}

// newSourceNode describes where the bundle comes from.
func newSourceNode(d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource) sourceNode {
	if ref := d.Spec.SourceRef; ref != nil && ref.IsFlux() {
		return newFluxNode(d)
	}
	node := sourceNode{Name: d.SourceName(), Inline: d.Spec.Source != nil, Exists: source != nil}
	spec := d.Spec.Source
	if source != nil {
		spec = &source.Spec
	}
	if spec != nil {
		for _, s := range spec.Sources {
			node.Parts = append(node.Parts, newSourcePart(s, source))
		}
	}
	if source == nil {
		return node
	}
	s := summarize(source)
	node.Ready, node.Revision = s.readiness(), s.revision
	if source.Status.Artifact != nil {
		node.Updated = &source.Status.Artifact.LastUpdateTime
	}
	if s.ready == metav1.ConditionFalse {
		node.Trouble = fmt.Sprintf("%s: %s", s.reason, s.message)
	}
	return node
}

// newFluxNode describes a source of Flux by the status of the deployment.
func newFluxNode(d *v1alpha1.BundleDeployment) sourceNode {
	node := sourceNode{Name: d.SourceDisplayName(), Exists: true, Revision: d.Status.LastAttemptedRevision}
	ready := conditions.Get(d, v1alpha1.SourceReadyCondition)
	if ready == nil {
		return node
	}
	node.Ready = string(ready.Status)
	if ready.Status == metav1.ConditionFalse {
		node.Trouble = fmt.Sprintf("%s: %s", ready.Reason, ready.Message)
	}
	return node
}

func newSourcePart(s v1alpha1.Source, source *v1alpha1.BundleSource) sourcePart {
	part := sourcePart{From: upstream(s), Destination: s.Destination, Pinned: isPinned(s)}
	if source == nil {
		return part
	}
	for _, r := range source.Status.Resolved {
		if r.Destination == s.Destination {
			part.Resolved = r.Digest
		}
	}
	return part
}
