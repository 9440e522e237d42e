// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/escalation"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
)

// impactPreview is the impact of a plan.
type impactPreview struct {
	Permissions []permissionPreview `json:"permissions,omitempty"`
	Definitions []definitionPreview `json:"definitions,omitempty"`
	Images      []imagePreview      `json:"images,omitempty"`
	Restarts    []restartPreview    `json:"restarts,omitempty"`
	// Further lists objects with more access than before: admission configuration, labels of Namespaces, privileges of Pods.
	Further []string `json:"further,omitempty"`
}

// permissionPreview are the new permissions of a subject.
type permissionPreview struct {
	Subject   string   `json:"subject"`
	Namespace string   `json:"namespace,omitempty"` // empty: in the whole cluster
	May       []string `json:"may"`
}

type definitionPreview struct {
	Name    string   `json:"name"`
	Change  string   `json:"change"`
	Details []string `json:"details,omitempty"`
}

type imagePreview struct {
	Object    string `json:"object"`
	Container string `json:"container"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
}

type restartPreview struct {
	Object string   `json:"object"`
	Fields []string `json:"fields"`
	Note   string   `json:"note,omitempty"`
}

// impact compares the live objects with the desired ones, both with the defaults of the API server where they are known.
func (p *previewer) impact() impactPreview {
	var before, after []*unstructured.Unstructured
	for _, action := range p.made.Actions() {
		was, will := p.sides(action)
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
	made := impactOf(impact.Of(before, after, p.deployment.InstallNamespaceOrDefault()))
	for _, finding := range escalation.Of(before, after, p.deployment.InstallNamespaceOrDefault()) {
		made.Further = append(made.Further, finding.String())
	}
	return made
}

// sides are an object before and after. If the dry run gave no result, it is unchanged unless the bundle differs.
func (p *previewer) sides(action plan.Action) (was, will *unstructured.Unstructured) {
	forecast := p.forecasts[action.ID]
	switch {
	case !action.Writes() && forecast.Live == nil:
		return action.Desired, action.Desired
	case !action.Writes():
		return forecast.Live, forecast.Live
	case forecast.After != nil:
		return forecast.Live, forecast.After
	case forecast.Live != nil:
		if changes, _ := fields.Wanted(forecast.Live, action.Desired); len(changes) == 0 {
			return forecast.Live, forecast.Live
		}
	}
	return forecast.Live, action.Desired
}

func impactOf(of impact.Impact) impactPreview {
	var v impactPreview
	for _, permission := range of.Permissions {
		v.Permissions = append(v.Permissions, permissionPreview{Subject: permission.Subject.String(), Namespace: permission.Namespace, May: permission.Words()})
	}
	for _, definition := range of.Definitions {
		v.Definitions = append(v.Definitions, definitionPreview{Name: definition.Name, Change: string(definition.What), Details: definition.Words})
	}
	for _, image := range of.Images {
		v.Images = append(v.Images, imagePreview{Object: image.Object.String(), Container: image.Container, From: image.From, To: image.To})
	}
	for _, restart := range of.Restarts {
		v.Restarts = append(v.Restarts, restartPreview{Object: restart.Object.String(), Fields: restart.Fields, Note: restart.Note})
	}
	return v
}
