// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/revision"
)

// establishTimeout is how long an apply waits for CRDs to be established before it
// releases its worker; usually that is long enough.
const establishTimeout = 2 * time.Second

func (st *Stage) options(in *Input) apply.Options {
	return apply.Options{
		Earlier: func(entry inventory.Entry) []*unstructured.Unstructured {
			return in.Rendered.Earlier(in.Subject, entry)
		},
		EstablishTimeout: establishTimeout,
		Migrations:       st.Migrations,
		Rules:            in.Rules,
		Recreate:         in.Recreates(),
	}
}

// Apply executes the plan, stage by stage.
func (st *Stage) Apply(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due {
		return pipeline.Continue, nil
	}
	st.recordConflicts(ctx, in, *in.Decided.Plan)
	st.Watches.Expect(in.Key(), in.expectation())
	options := st.options(in)
	options.Before = func(ctx context.Context) (string, error) { return st.Hooks.Before(ctx, in.Operation()) }
	result, err := apply.Apply(ctx, in.Resolved.Access.Client, *in.Decided.Plan, options)
	in.Delivered.Applied = &result
	if recorded := in.Listed.Record(in.Subject, in.Delivered.Hooks.In(result.Inventory)); recorded != nil {
		return pipeline.Stop, recorded
	}
	if err != nil {
		return pipeline.Stop, err
	}
	in.Delivered.Warnings = append(in.Delivered.Warnings, result.Warnings...)
	if in.Keeping {
		in.Delivered.LeftOut = in.Decided.LeaveOut(result.Errors())
		if result.Pending != "" {
			in.Delivered.LeftOut = append(in.Delivered.LeftOut, result.Pending)
		}
		return pipeline.Continue, nil
	}
	if failed := result.Errors(); len(failed) > 0 {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonApplyFailed, Err: in.Resolved.ObjectErrors(ctx, in.Subject, in.Listed, failed)}
	}
	if !result.Complete() {
		in.holdPhase(result.Waits)
		in.Wait(result.Pending)
		return pipeline.Stop, nil
	}
	return pipeline.Continue, st.complete(in)
}

// Wait records what an apply waits for, and since when.
func (in *Input) Wait(what string) {
	in.Delivered.WaitsFor = what
	n := stage.Note{UID: in.Object.UID, Attempt: in.Resolved.Attempt(in.Subject), Applying: stage.ApplyingNote{
		Wrote: in.Note.Applying.Wrote, Waits: in.Now, Phase: in.Delivered.Phase, PhaseSince: in.Now, Hook: in.Delivered.Hooks.At,
	}}
	if in.Note.Attempt == n.Attempt && !in.Note.Applying.Waits.IsZero() && in.sameHook() {
		n.Applying.Waits, n.Applying.Pauses = in.Note.Applying.Waits, in.Note.Applying.Pauses
	}
	*in.Note = n
}

// complete records that the revision is applied.
func (st *Stage) complete(in *Input) error {
	in.Delivered.Complete = true
	if in.Keeping {
		return nil
	}
	status := &in.Object.Status
	if status.Applied.Revision != in.Resolved.Revision() || in.Decided.Plan.Count(plan.Create, plan.Adopt, plan.Update, plan.Recreate) > 0 || status.Applied.CompletionTime == nil {
		status.Applied.CompletionTime = new(pipeline.StatusTime(in.Now))
	}
	status.Applied.Revision, status.Applied.OriginRevision = in.Resolved.Revision(), in.Resolved.OriginRevision
	status.Applied.Version = revision.Version(in.Rendered.Version, in.Resolved.OriginRevision)
	if err := st.Artifacts.Keep(string(in.Object.UID), in.worthKeeping()...); err != nil {
		return err
	}
	return st.saveSnapshot(in)
}

// worthKeeping are the artifacts that must stay in the cache: the applied one, and the
// one for a rollback.
func (in *Input) worthKeeping() []loader.Kept {
	kept := []loader.Kept{{Owner: in.Resolved.Source.Owner, Digest: in.Resolved.Artifact.Digest}}
	if healthy := in.Object.Status.Internal.Artifact; healthy != nil && effective.RollsBack(&in.Object.Spec) {
		if owner, err := stage.OwnerOf(healthy, in.Object.Namespace); err == nil {
			kept = append(kept, loader.Kept{Owner: owner, Digest: healthy.Digest})
		}
	}
	return kept
}

// sameHook tells that the apply waits for the same hook as before, or for none. Each hook
// has the whole timeout.
func (in *Input) sameHook() bool {
	if in.Note.Applying.Hook == nil || in.Delivered.Hooks.At == nil {
		return in.Note.Applying.Hook == nil && in.Delivered.Hooks.At == nil
	}
	return in.Note.Applying.Hook.UID == in.Delivered.Hooks.At.UID
}

// expectation lists the objects that are about to be created.
func (in *Input) expectation() drift.Subscription {
	subscription := in.Resolved.Subscription(in.Subject, in.Listed)
	for action := range in.Decided.Plan.Actions() {
		if action.Verb == plan.Create && !action.Untracked {
			subscription.Objects = append(subscription.Objects, drift.Object{Entry: inventory.Entry{ID: action.ID}, Resource: action.Resource})
		}
	}
	return subscription
}
