// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Pipeline is the state of a BundleDeployment, step by step. Its JSON form is what status -o json prints.
type Pipeline struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Ready     metav1.ConditionStatus `json:"ready"`
	Reason    string                 `json:"reason,omitempty"`
	State     string                 `json:"state"`
	Revision  string                 `json:"revision,omitempty"`
	// OriginRevision and Version name Revision for people.
	OriginRevision string `json:"originRevision,omitempty"`
	Version        string `json:"version,omitempty"`
	// Package is the OLM package of the revision; CertificateExpirationTime is when the first certificate of its webhooks ends.
	Package                   *v1alpha1.PackageStatus `json:"package,omitempty"`
	CertificateExpirationTime *metav1.Time            `json:"certificateExpirationTime,omitempty"`

	Source   SourceNode       `json:"source"`
	Steps    []StepNode       `json:"steps"`
	Problem  *Problem         `json:"problem,omitempty"`
	Approval *PendingDecision `json:"approval,omitempty"`
	Warnings []string         `json:"warnings,omitempty"`
	Next     []string         `json:"next"`

	UpToDate bool `json:"-"` // Ready is True, and about the current spec
}

// SourceNode is where the bundle comes from.
type SourceNode struct {
	Name     string       `json:"name"`
	Inline   bool         `json:"inline"`
	Exists   bool         `json:"exists"`
	Ready    string       `json:"ready,omitempty"`
	Parts    []SourcePart `json:"parts,omitempty"`
	Revision string       `json:"revision,omitempty"`
	// OriginRevision names Revision as the upstream does.
	OriginRevision string       `json:"originRevision,omitempty"`
	Updated        *metav1.Time `json:"updated,omitempty"`
	Trouble        string       `json:"trouble,omitempty"` // why it cannot be fetched again
}

// SourcePart is one of the places that a source takes files from, and what it resolved to.
type SourcePart struct {
	From        string `json:"from"`
	Destination string `json:"destination,omitempty"`
	Resolved    string `json:"resolved,omitempty"`
	Pinned      bool   `json:"pinned"`
}

// StepState says how far a step is.
type StepState string

// The states of a step.
const (
	StepDone    StepState = "Done"
	StepFailed  StepState = "Failed"
	StepWorking StepState = "Working"
	StepWaiting StepState = "Waiting" // for the steps before it
)

// StepNode is one step of the pipeline.
type StepNode struct {
	Name   string       `json:"name"`
	State  StepState    `json:"state"`
	Reason string       `json:"reason,omitempty"`
	Detail string       `json:"detail,omitempty"`
	Since  *metav1.Time `json:"since,omitempty"`
}

// Problem is the first step that failed, and what to do about it.
type Problem struct {
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

// NewPipeline builds the state of a deployment; source is nil when it does not exist, and program is
// the name under which the user runs this program.
func NewPipeline(d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource, program string, now time.Time) Pipeline {
	s := Summarize(d)
	p := Pipeline{
		Namespace: d.Namespace, Name: d.Name, Ready: metav1.ConditionStatus(s.Readiness()), Reason: s.Reason,
		State: StateOf(s), Revision: s.Revision, OriginRevision: s.Origin, Version: s.Version, Source: newSourceNode(d, source), Warnings: d.Status.Warnings,
		Package: d.Status.Healthy.Package, CertificateExpirationTime: d.Status.CertificateExpirationTime, UpToDate: s.IsReady(),
	}
	if s.Ready == "" {
		p.Ready = metav1.ConditionUnknown
	}
	for _, step := range steps {
		node := newStep(d, step.condition)
		if node.State == StepDone {
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
	p.Approval = newPendingDecision(d, program)
	p.Next = append(nextUp(d, source, s), nextCertificates(d, s, now)...)
	return p
}

// StateOf is the state in one word or two.
func StateOf(s Summary) string {
	switch {
	case s.Deleting:
		return "being deleted"
	case s.Ready == "":
		return "not seen by the controller yet"
	case s.Unseen:
		return "changed, and the controller has not seen it yet"
	case s.IsReady() && s.Suspended:
		return "Ready, suspended"
	case s.IsReady() && s.Pending != "":
		return "Ready, " + s.Pending
	case s.IsReady():
		return "Ready"
	case s.Suspended:
		return "not Ready, suspended"
	case s.InProgress():
		return "in progress"
	}
	return "not Ready"
}

// newStep reads one condition. A step with a reason of progress is working, whatever its status.
func newStep(d *v1alpha1.BundleDeployment, kind string) StepNode {
	c := apimeta.FindStatusCondition(d.Status.Conditions, kind)
	if c == nil {
		return StepNode{Name: kind, State: StepWaiting}
	}
	node := StepNode{Name: kind, Reason: c.Reason, Detail: c.Message, Since: &c.LastTransitionTime}
	switch {
	case c.Status == metav1.ConditionTrue:
		node.State = StepDone
	case c.Status == metav1.ConditionUnknown || isProgress(c.Reason):
		node.State = StepWorking
	default:
		node.State = StepFailed
	}
	return node
}

// newReadyStep reads Ready, and ignores it if it is about an older spec.
func newReadyStep(d *v1alpha1.BundleDeployment, s Summary) StepNode {
	node := newStep(d, v1alpha1.ReadyCondition)
	if s.Unseen && node.State != StepWaiting {
		node.State, node.Reason, node.Detail = StepWorking, "", "this is about the spec before the last change"
	}
	return node
}

// markPrevious changes the steps after the first one that failed: they describe the previous revision.
func markPrevious(nodes []StepNode) {
	failed := false
	for i := range nodes {
		node := &nodes[i]
		switch {
		case failed && node.State == StepDone && node.Name == v1alpha1.PlannedCondition:
			*node = StepNode{Name: node.Name, State: StepWaiting}
		case failed && node.State == StepDone && node.Detail != "":
			node.Detail = "still " + node.Detail
		case node.State == StepFailed:
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
func settleSource(step *StepNode, source *v1alpha1.BundleSource) {
	if step.State == StepFailed && step.Reason == v1alpha1.ReasonSourceNotReady && source != nil && Summarize(source).InProgress() {
		step.State = StepWorking
	}
}

// findProblem returns the first step that failed, from the given one on; only when there is none, those before count.
// For the source step it uses the source's own message.
func findProblem(p Pipeline, first int, source *v1alpha1.BundleSource) *Problem {
	failed := func(step StepNode) bool { return step.State == StepFailed }
	ready := len(p.Steps) - 1
	at := slices.IndexFunc(p.Steps[first:], failed) + first
	if at < first || at == ready && p.Steps[0].Reason == p.Steps[ready].Reason {
		at = slices.IndexFunc(p.Steps, failed)
	}
	if at < 0 {
		return nil
	}
	step := p.Steps[at]
	found := &Problem{Step: step.Name, Reason: step.Reason, Message: step.Detail}
	if step.Reason == v1alpha1.ReasonSourceNotReady && source != nil {
		if s := Summarize(source); s.Ready == metav1.ConditionFalse {
			found.Reason, found.Message = s.Reason, s.Message
		}
	}
	found.Hint = HintFor(found.Reason)
	return found
}

// newSourceNode describes where the bundle comes from.
func newSourceNode(d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource) SourceNode {
	if ref := d.Spec.SourceRef; ref != nil && effective.IsFlux(ref) {
		return newFluxNode(d)
	}
	node := SourceNode{Name: effective.SourceName(d), Inline: effective.OwnsSource(d), Exists: source != nil}
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
	s := Summarize(source)
	node.Ready, node.Revision, node.OriginRevision = s.Readiness(), s.Revision, s.Origin
	if source.Status.Artifact != nil {
		node.Updated = &source.Status.Artifact.LastUpdateTime
	}
	if s.Ready == metav1.ConditionFalse {
		node.Trouble = fmt.Sprintf("%s: %s", s.Reason, s.Message)
	}
	return node
}

// newFluxNode describes a source of Flux by the status of the deployment.
func newFluxNode(d *v1alpha1.BundleDeployment) SourceNode {
	node := SourceNode{Name: effective.SourceDisplayName(d), Exists: true, Revision: d.Status.Attempted.Revision}
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

func newSourcePart(s v1alpha1.Source, source *v1alpha1.BundleSource) SourcePart {
	part := SourcePart{From: Upstream(s), Destination: s.Destination, Pinned: IsPinned(s)}
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
