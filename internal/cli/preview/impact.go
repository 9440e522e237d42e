// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/escalation"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// ImpactPreview is the impact of a plan.
type ImpactPreview struct {
	Permissions []PermissionPreview `json:"permissions,omitempty"`
	Definitions []DefinitionPreview `json:"definitions,omitempty"`
	Images      []ImagePreview      `json:"images,omitempty"`
	Restarts    []RestartPreview    `json:"restarts,omitempty"`
	// Further lists what in the objects is not known to be harmless, and was not there before.
	Further []string `json:"further,omitempty"`
}

// PermissionPreview are the new permissions of a subject.
type PermissionPreview struct {
	Subject   string   `json:"subject"`
	Namespace string   `json:"namespace,omitempty"` // empty: in the whole cluster
	May       []string `json:"may"`
}

// DefinitionPreview is what would change in a CRD.
type DefinitionPreview struct {
	Name    string   `json:"name"`
	Change  string   `json:"change"`
	Details []string `json:"details,omitempty"`
}

// ImagePreview is an image that would change.
type ImagePreview struct {
	Object    string `json:"object"`
	Container string `json:"container"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
}

// RestartPreview is a workload with Pods that would be replaced, and the fields that cause it.
type RestartPreview struct {
	Object string   `json:"object"`
	Fields []string `json:"fields"`
	Note   string   `json:"note,omitempty"`
}

// impact compares the live objects with the desired ones, both with the defaults of the API server where they are known.
func (p *Previewer) impact() ImpactPreview {
	var before, after []*unstructured.Unstructured
	for action := range p.made.Actions() {
		was, will := p.sides(*action)
		before, after = append(before, was), append(after, will)
	}
	for _, hook := range p.made.Hooks {
		after = append(after, hook.Desired)
		if p.previous.Has(hook.ID) { // it ran before
			before = append(before, hook.Desired)
		}
	}
	for _, stages := range [][]plan.DeletionStage{p.made.PruneFirst, p.made.Prune} {
		for _, stage := range stages {
			for _, deletion := range stage.Deletions {
				before = append(before, p.forecasts[deletion.ID].Live)
			}
		}
	}
	made := impactOf(impact.Of(before, after, effective.InstallNamespace(p.Deployment)))
	for _, finding := range escalation.Of(before, after, effective.InstallNamespace(p.Deployment)) {
		made.Further = append(made.Further, finding.String())
	}
	return made
}

// sides are an object before and after. If the dry run gave no result, it is unchanged unless the bundle differs.
func (p *Previewer) sides(action plan.Action) (was, will *unstructured.Unstructured) {
	forecast := p.forecasts[action.ID]
	switch {
	case !action.Writes() && forecast.Live == nil:
		return action.Desired, action.Desired
	case !action.Writes():
		return forecast.Live, forecast.Live
	case forecast.Live == nil: // defaults of the API server were not chosen by the bundle
		return nil, action.Desired
	case forecast.After != nil:
		return forecast.Live, forecast.After
	case forecast.Live != nil:
		if changes, _ := fields.Wanted(forecast.Live, action.Desired); len(changes) == 0 {
			return forecast.Live, forecast.Live
		}
	}
	return forecast.Live, action.Desired
}

func impactOf(of impact.Impact) ImpactPreview {
	var v ImpactPreview
	for _, permission := range of.Permissions {
		v.Permissions = append(v.Permissions, PermissionPreview{Subject: permission.Subject.String(), Namespace: permission.Namespace, May: permission.Words()})
	}
	for _, definition := range of.Definitions {
		v.Definitions = append(v.Definitions, DefinitionPreview{Name: definition.Name, Change: string(definition.What), Details: definition.Words})
	}
	for _, image := range of.Images {
		v.Images = append(v.Images, ImagePreview{Object: image.Object.String(), Container: image.Container, From: image.From, To: image.To})
	}
	for _, restart := range of.Restarts {
		v.Restarts = append(v.Restarts, RestartPreview{Object: restart.Object.String(), Fields: restart.Fields, Note: restart.Note})
	}
	return v
}
