// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
)

// withDependents are the kinds that may be created again only when their Pods are gone: the
// new Pods have the same names, or do the same work.
var withDependents = map[string]bool{
	"Deployment.apps": true, "StatefulSet.apps": true, "DaemonSet.apps": true, "ReplicaSet.apps": true,
	"Job.batch": true, "CronJob.batch": true, "ReplicationController": true,
}

// recreate deletes an object with a refused change of immutable fields, in the state in which
// it was read as the owner's, and creates it again. An object that is slow to terminate is
// created in a later call, when it is gone.
func (a *application) recreate(ctx context.Context, action plan.Action, outcome Outcome, fields []string) Outcome {
	ref := tenant.RefTo(action.ID, action.Resource)
	for range write.Attempts {
		live, err := a.client.Get(ctx, ref)
		if apierrors.IsNotFound(err) {
			return a.createAgain(ctx, action, outcome)
		}
		if err != nil {
			return failed(outcome, err)
		}
		if kept := a.keeps(live); kept != "" {
			outcome.Kind, outcome.Reason = Failed, ""
			outcome.Err = &objecterror.Error{ID: action.ID, Reason: "Invalid", Message: objecterror.OneLine(objecterror.Unchangeable(action.ID, fields) + ". It is not deleted: " + kept)}
			return outcome
		}
		gone, err := a.client.DeleteFor(ctx, ref, live.GetUID(), live.GetResourceVersion(), withDependents[action.GroupKind().String()])
		switch {
		case apierrors.IsConflict(err):
			continue
		case err != nil && !apierrors.IsNotFound(err):
			return failed(outcome, err)
		case err == nil && !gone:
			outcome.Kind, outcome.Reason = Pending, "is being deleted and will be recreated"
			outcome.entry, outcome.reset = inventory.Entry{ID: action.ID, Version: action.Resource.Version, Mark: action.Mark}, true
			return outcome
		}
		return a.createAgain(ctx, action, outcome)
	}
	outcome.Kind, outcome.Reason = Pending, write.WasChanging
	return outcome
}

// keeps says why a live object must not be deleted; nothing when it may.
func (a *application) keeps(live *unstructured.Unstructured) string {
	seen := ownership.LiveOf(live, a.owner)
	retention, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	switch {
	case seen.ClaimOf(a.owner, ownership.Prevent) != ownership.Owned:
		return "it is not this deployment's any more"
	case seen.Ending.Kept != "":
		return "its annotation " + seen.Ending.Kept + " says so"
	case live.GetKind() == "StatefulSet" && retention == "Delete":
		return "its claims, and their data, would go with it by spec.persistentVolumeClaimRetentionPolicy"
	}
	return ""
}

// createAgain applies an object that was deleted.
func (a *application) createAgain(ctx context.Context, action plan.Action, outcome Outcome) Outcome {
	answer, err := a.writer.Write(ctx, action)
	if err != nil {
		outcome = failed(outcome, err)
		outcome.entry, outcome.reset = inventory.Entry{ID: action.ID, Version: action.Resource.Version, Mark: action.Mark}, true
		return outcome
	}
	outcome.Kind = Recreated
	return a.wrote(action, outcome, answer)
}

// wrote records the API server's answer in the outcome.
func (a *application) wrote(action plan.Action, outcome Outcome, answer *tenant.Answer) Outcome {
	outcome.entry, outcome.version = entryOf(action, answer, a.owner.Manager()), answer.Meta.ResourceVersion
	if action.Verb == plan.Settle && answer.Meta.Generation != 0 && outcome.entry.Seen != action.Seen {
		outcome.Kind, outcome.Reason = Repaired, "had its lists in another order"
	}
	outcome.Kept = action.Handover.Kept
	if fields, found := a.gaveWay.Load(action.ID); found {
		outcome.GaveWay, _ = fields.([]fieldmanager.Field)
	}
	var err error
	if a.retains(action, answer) {
		if outcome.live, err = answer.Object(); err != nil {
			return failed(outcome, err)
		}
	}
	return outcome
}

// mostKept bounds the answers that one apply keeps, in bytes: further objects are read again for their health.
const mostKept = 32 << 20

// retains tells whether to keep the answer, so that the health check need not read the object.
func (a *application) retains(action plan.Action, answer *tenant.Answer) bool {
	return !health.AlwaysCurrent(action.GroupKind()) && a.kept.Add(int64(answer.Size())) <= mostKept
}
