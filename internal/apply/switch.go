// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/webhookserver"
)

// stageConversions is the name of the step that switches conversion webhooks on.
const stageConversions = "conversion webhooks"

// switches are the CRDs of a plan with a conversion webhook that is not switched on yet, by the name of the CRD.
type switches struct {
	sync.Mutex
	waiting map[string]awaited
}

// awaited is a CRD that keeps its former conversion and storage version until the workloads behind its webhook are available.
type awaited struct {
	action  plan.Action // with the whole CRD
	storage string      // the former storage version
	former  []string    // versions that were served before
}

// add remembers a CRD: its conversion webhook is switched on later.
func (s *switches) add(waits awaited) {
	s.Lock()
	defer s.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]awaited{}
	}
	s.waiting[waits.action.Name] = waits
}

// take removes and returns the CRDs that a stage needs with their webhooks, by name; all of them after the last stage.
func (s *switches) take(p plan.Plan, at int) []awaited {
	s.Lock()
	defer s.Unlock()
	var due []awaited
	for _, name := range slices.Sorted(maps.Keys(s.waiting)) {
		if waits := s.waiting[name]; switchPoint(p, waits) <= at {
			due = append(due, waits)
			delete(s.waiting, name)
		}
	}
	return due
}

// switchPoint is the first stage that writes resources in a version which the CRD did not serve before: without the
// webhook they would lose fields. Without such resources it is the end of the plan.
func switchPoint(p plan.Plan, waits awaited) int {
	at := slices.IndexFunc(p.Stages, func(stage plan.Stage) bool {
		return slices.ContainsFunc(stage.Actions, func(action plan.Action) bool {
			return action.Definition == waits.action.Name && action.Writes() && !slices.Contains(waits.former, action.Resource.Version)
		})
	})
	if at < 0 {
		return len(p.Stages)
	}
	return at
}

// applyInterim is the action that applies a CRD in place of the whole one until its conversion webhook can answer, where there
// is one: mostly the whole CRD can be applied at once. See docs/adr/0057-conversion-webhooks-in-two-steps.md.
func (a *application) applyInterim(action plan.Action, live *unstructured.Unstructured) prepared {
	interim := crds.Interim(live, action.Desired)
	if interim == nil {
		return prepared{Action: action}
	}
	if webhookserver.AtOnce(live, action.Desired, a.plan.Objects()) != "" {
		return prepared{Action: action}
	}
	storage, _ := crds.Versions(live)
	waits := awaited{action: action, storage: storage, former: crds.ServedVersions(live)}
	action.Desired = interim
	return prepared{Action: action, rest: &waits}
}

// switchOn switches the conversion webhooks on that a stage needs. It tells whether the apply has to wait for what serves them.
func (a *application) switchOn(ctx context.Context, p plan.Plan, at int) (waits bool, err error) {
	due := a.switches.take(p, at)
	if len(due) == 0 {
		return false, nil
	}
	desired := a.plan.Objects()
	servers := make([]webhookserver.Server, len(due))
	for i, of := range due {
		if servers[i], err = webhookserver.Find(ctx, a.client, desired, *crds.ConversionService(of.action.Desired)); err != nil {
			a.result.Stage = stageConversions
			return true, fmt.Errorf("finding the workloads behind the conversion webhook of %s: %w", of.action.ID, err)
		}
	}
	objects, report, err := webhookserver.Check(ctx, a.client, a.options.Rules, servers, a.result.Live)
	switch {
	case err != nil:
		a.result.Stage = stageConversions
		return true, fmt.Errorf("checking the workloads behind conversion webhooks: %w", err)
	case !report.Healthy():
		a.result.Waits = &PhaseWait{For: waitsFor(due), Phase: p.Stages[len(p.Stages)-1].Phase + 1, Objects: objects, Report: report}
		a.result.Stage, a.result.Pending = stageConversions, a.result.Waits.String()
		return true, nil
	}
	var actions []plan.Action
	for i, of := range due {
		a.result.forgetOutcome(of.action.ID)
		actions = append(actions, of.action)
		if why := servers[i].Unknown; why != "" {
			a.result.Warnings = append(a.result.Warnings, fmt.Sprintf("the conversion webhook of %s was switched on, and it is not known whether it answers: %s", of.action.ID, why))
		}
	}
	a.record(plan.Stage{Name: stageConversions, Actions: actions}, parallel.Each(ctx, a.options.Parallelism, actions, a.write))
	return a.result.Stage != "" && !p.Keeps(), ctx.Err()
}

// waitsFor says what is waited for, and what that means meanwhile.
func waitsFor(due []awaited) string {
	var names []string
	for _, of := range due {
		names = append(names, fmt.Sprintf("%s (stored as %s)", of.action.Name, of.storage))
	}
	return fmt.Sprintf("the conversion webhook of %s is switched on when the workloads behind its Service are available; "+
		"conversion and storage version are the former ones until then, so that the former revision can be applied again", strings.Join(names, ", "))
}

// forgetOutcome removes the outcome of an object that is written once more.
func (r *Result) forgetOutcome(id inventory.ID) {
	r.Outcomes = slices.DeleteFunc(r.Outcomes, func(o Outcome) bool { return o.ID == id })
}
