// SPDX-License-Identifier: Apache-2.0

// Package operation tells which hooks of a plan the controller would run.
package operation

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/spec"
)

// Facts are what decides on the hooks of a previewed plan.
type Facts struct {
	Deployment *v1alpha1.BundleDeployment
	Plan       plan.Plan
	// Content is the digest of the converted bundle. Artifact and Revision are those of its source; empty for a folder.
	Content, Artifact, Revision string
	// Planned: status.plan is of the same content, as far as that is known.
	Planned bool
	// Secret: values of Secrets went into the conversion, so that Content cannot be compared.
	Secret bool
}

// Hooks are those that would run, in their order. AfterRetry tells that they run only when that is requested.
//
//	status.hooks                          runs
//	of this content, finished             none
//	of this content, under way            those that are left
//	of this content, one of them failed   those of the failed event and of the one after it, once that is requested
//	of other content, or none             those of the operation that begins
func (f Facts) Hooks() (runs []plan.HookRun, afterRetry bool) {
	was := f.Deployment.Status.Hooks
	switch {
	case !f.Deployment.DeletionTimestamp.IsZero(), f.recovered():
		return nil, false
	case !f.continues(was):
		return plan.HookRuns(f.Plan.Hooks, f.begins()), false
	case was.CompletionTime != nil:
		return nil, false
	}
	runs = plan.HookRuns(f.Plan.Hooks, plan.Operation(was.Operation))
	if was.Failed == nil {
		return runs[min(int(was.Completed), len(runs)):], false
	}
	if strings.HasPrefix(was.Failed.Event, "post-") {
		runs = slices.DeleteFunc(runs, func(run plan.HookRun) bool { return !run.After })
	}
	return runs, true
}

// begins is the operation that begins with this content.
func (f Facts) begins() plan.Operation {
	status := &f.Deployment.Status
	switch {
	case status.Applied.Revision != "":
		return plan.Upgrade
	case status.Hooks != nil && status.Hooks.Operation == v1alpha1.HookAdopt:
		return plan.Adopting
	}
	return f.Plan.First()
}

// continues tells whether this content belongs to the operation in the status, or to its result. The controller compares digests
// with its key. Without the key, values of Secrets cannot be compared: those of inputs are compared by the digest in the status,
// and those in the bundle by whether the dry run changes them.
func (f Facts) continues(was *v1alpha1.HooksStatus) bool {
	switch {
	case was == nil:
		return false
	case f.Secret:
		return f.Planned && was.Inputs == f.Deployment.Status.Plan.Inputs && was.Revision == f.Revision
	}
	return was.Content == f.Content && (was.Digest == f.Artifact || !changesSecret(f.Plan))
}

func changesSecret(p plan.Plan) bool {
	for action := range p.Actions() {
		if action.Group == "" && action.ID.Kind == spec.SecretKind && action.Verb != plan.Unchanged {
			return true
		}
	}
	return false
}

// recovered tells whether the status was lost, and the revision is the one that had been applied: no hook runs for it.
func (f Facts) recovered() bool {
	status := &f.Deployment.Status
	return status.Hooks == nil && status.Inventory != nil && status.Inventory.Recovered &&
		(status.Applied.Revision == "" || status.Applied.Revision == f.Revision)
}
