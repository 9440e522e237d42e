// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/decide"
	"github.com/satchel-dev/satchel/internal/controller/deployment/deliver"
	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/settle"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// declaredStep declares a step of a reconcile. All code that depends on single steps uses it, and a test compares the steps
// with docs/architecture.md.
type declaredStep struct {
	name string
	// condition is the type of the condition that reports a failure; "" for Ready only.
	condition string
	// keepsApplied tells that, if the step fails, nothing of a newer revision was written, and the inventory and its cluster
	// are known: drift of the applied revision is corrected meanwhile.
	keepsApplied bool
	run          runStep
}

// declaredSteps is the whole reconcile of a deployment that is not being deleted, in order.
func declaredSteps() []declaredStep {
	const (
		source    = v1alpha1.SourceReadyCondition
		resolved  = v1alpha1.ResolvedCondition
		converted = v1alpha1.ConvertedCondition
		planned   = v1alpha1.PlannedCondition
		applied   = v1alpha1.AppliedCondition
		healthy   = v1alpha1.HealthyCondition
		ready     = "" // and no other
	)
	return []declaredStep{
		{"protect", ready, false, (*Reconciler).protect},
		{"account", ready, false, resolves((*resolve.Stage).FindAccount)},
		{"target", ready, false, resolves((*resolve.Stage).Target)},
		{"server", ready, true, decides((*decide.Stage).Server)},
		{"recover", ready, false, resolves((*resolve.Stage).Recover)},
		{"accept", ready, true, resolves((*resolve.Stage).Accept)},
		{"catalog", resolved, true, (*Reconciler).resolveCatalog},
		{"source", source, true, resolves((*resolve.Stage).FindSource)},
		{stage.StepInputs, converted, true, resolves((*resolve.Stage).FindInputs)},
		{"trust", source, true, resolves((*resolve.Stage).Trust)},
		{"depend", ready, true, resolves((*resolve.Stage).Depend)},
		{"due", ready, false, (*Reconciler).due},
		{"compare", planned, true, (*Reconciler).compare},
		{"repair", ready, false, (*Reconciler).repair},
		{"load", source, true, renders((*render.Stage).Load)},
		{stage.StepConvert, converted, true, (*Reconciler).convert},
		{stage.StepCertify, planned, true, renders((*render.Stage).Certify)},
		{"plan", planned, true, decides((*decide.Stage).Plan)},
		{"preflight", planned, true, decides((*decide.Stage).Preflight)},
		{"dry-run", planned, true, decides((*decide.Stage).DryRun)},
		{stage.StepApprove, ready, true, decides((*decide.Stage).Approve)},
		{"hooks", applied, true, (*Reconciler).operate},
		{"remember", planned, true, (*Reconciler).remember},
		{"consume", ready, true, delivers((*deliver.Stage).Consume)},
		{stage.StepPruneFirst, applied, false, delivers((*deliver.Stage).PruneFirst)},
		{stage.StepApply, applied, false, delivers((*deliver.Stage).Apply)},
		{"health", healthy, false, settles((*settle.Stage).CheckHealth)},
		{"post-hooks", healthy, false, (*Reconciler).afterHealth},
		{"prune", applied, false, (*Reconciler).prune},
	}
}

// declaredRemoval are the steps of a deployment that is being deleted.
func declaredRemoval() []declaredStep {
	return []declaredStep{
		{"account", "", false, (*Reconciler).removalAccount},
		{"target", "", false, resolves((*resolve.Stage).Target)},
		{"recover", "", false, resolves((*resolve.Stage).Recover)},
		{"pre-delete", "", false, (*Reconciler).beforeRemoval},
		{"remove", "", false, delivers((*deliver.Stage).Remove)},
		{"post-delete", "", false, (*Reconciler).afterRemoval},
	}
}

// declared is the declaration of the step in which an error occurred; the zero value if there is none.
func declared(err error) declaredStep {
	steps := declaredSteps()
	if i := indexOfStep(steps, pipeline.FailedStep(err)); i >= 0 {
		return steps[i]
	}
	return declaredStep{}
}

func indexOfStep(steps []declaredStep, name string) int {
	return slices.IndexFunc(steps, func(s declaredStep) bool { return s.name == name })
}

// isAfter tells whether an error occurred in a step after the named one. A step of a removal, or none, counts as after all.
func isAfter(err error, name string) bool {
	steps := declaredSteps()
	failed := indexOfStep(steps, pipeline.FailedStep(err))
	return failed < 0 || failed > indexOfStep(steps, name)
}

// delivery are the steps that apply converted objects.
func delivery() []declaredStep {
	steps := declaredSteps()
	return steps[indexOfStep(steps, stage.StepCertify):]
}

// bind binds declared steps to this reconciler.
func (r *Reconciler) bind(declared []declaredStep) []pipeline.Step[*state] {
	steps := make([]pipeline.Step[*state], len(declared))
	for i, d := range declared {
		steps[i] = pipeline.Step[*state]{Name: d.name, Run: func(ctx context.Context, s *state) (pipeline.Outcome, error) { return d.run(r, ctx, s) }}
	}
	return steps
}
