// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

const establishPoll = 100 * time.Millisecond

// established waits, bounded, until the CRDs that later stages need are served.
// It returns those that are not served by then, and why; nothing when all are, or when the
// stage does not contain the CRDs.
func (a *application) established(ctx context.Context, applied, later []plan.Stage) map[string]string {
	stage := applied[len(applied)-1]
	if len(stage.Actions) == 0 || !crds.IsCRD(stage.Actions[0].ID) {
		return nil
	}
	if slices.ContainsFunc(stage.Actions, plan.Action.Writes) {
		a.client.Kinds().Forget()
	}
	waiting := needed(applied, later)
	_ = wait.PollUntilContextTimeout(ctx, establishPoll, a.options.EstablishTimeout, true, func(ctx context.Context) (bool, error) {
		for _, name := range slices.Sorted(maps.Keys(waiting)) {
			state := definitionState(ctx, a.client, name)
			if ctx.Err() != nil {
				break // the state tells of the time-out only
			}
			if waiting[name] = state; state == "" {
				delete(waiting, name)
			}
		}
		return len(waiting) == 0, nil
	}) // the caller reports the time-out
	return waiting
}

// why joins the reasons for which CRDs are not served.
func why(waiting map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		words = append(words, waiting[name])
	}
	return strings.Join(words, "; ")
}

// needed are the CRDs among the applied objects that the later stages write resources of,
// each with the initial reason for waiting.
func needed(applied, later []plan.Stage) map[string]string {
	there := map[string]bool{}
	for _, stage := range applied {
		for _, action := range stage.Actions {
			there[action.Name] = there[action.Name] || crds.IsCRD(action.ID)
		}
	}
	names := map[string]string{}
	for _, stage := range later {
		for _, action := range stage.Actions {
			if action.Definition != "" && action.Writes() && there[action.Definition] {
				names[action.Definition] = "CustomResourceDefinition.apiextensions.k8s.io " + action.Definition + " is not established"
			}
		}
	}
	return names
}

// definitionState describes why a CRD is not served yet; empty when it is.
func definitionState(ctx context.Context, client *tenant.Client, name string) string {
	crd, err := client.Get(ctx, tenant.Ref{Resource: crds.Resource, Name: name})
	if err != nil {
		return fmt.Sprintf("CustomResourceDefinition %s cannot be read: %s", name, objecterror.OneLine(err.Error()))
	}
	if crds.Established(crd) {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	reason := "the API server does not serve it yet"
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		kind, _ := fields["type"].(string)
		status, _ := fields["status"].(string)
		if kind == "NamesAccepted" && status == "False" {
			reason, _ = fields["message"].(string)
		}
	}
	return fmt.Sprintf("CustomResourceDefinition %s is not established: %s", name, reason)
}
