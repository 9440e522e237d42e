// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/cli/preview/operation"
)

// hookPreview is an object that would run once, before or after the objects are applied.
type hookPreview struct {
	Event     string `json:"event"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Weight    int    `json:"weight,omitempty"`

	text string
}

// hooks are those that would run, in their order.
func (p *Previewer) hooks() []hookPreview {
	runs, afterRetry := operation.Facts{
		Deployment: p.Deployment, Plan: p.made, Content: p.Out.Content, Artifact: p.Out.Artifact, Revision: p.Out.Revision,
		Planned: p.Out.isPlanned(p.Deployment), Secret: p.Out.secret,
	}.Hooks()
	if afterRetry {
		p.note("a hook failed: hooks run again when the source has another revision, the spec changes, or a reconcile is requested with satchel reconcile --retry")
	}
	hooks := make([]hookPreview, 0, len(runs))
	for _, run := range runs {
		hooks = append(hooks, hookPreview{
			Event: run.Event, Group: run.Group, Kind: run.ID.Kind, Namespace: run.Namespace, Name: run.Name, Weight: run.Weight,
			text: runsWhen(run) + ": " + run.ID.String() + fmt.Sprintf(" (%s, weight %d)", run.Event, run.Weight),
		})
	}
	return hooks
}

func runsWhen(run plan.HookRun) string {
	if run.After {
		return "runs after"
	}
	return "runs before"
}

func hookLines(hooks []hookPreview) []string {
	lines := make([]string, 0, len(hooks))
	for _, hook := range hooks {
		lines = append(lines, hook.text)
	}
	return lines
}
