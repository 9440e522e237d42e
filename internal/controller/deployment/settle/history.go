// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/revision"
)

// longestCause bounds the message of a record in the history, in bytes.
const longestCause = 512

// beginRecord puts the revision that is tried at the head of the history: a new one, a
// rejected one that is tried again, or one with a changed spec or inputs.
func beginRecord(in *Input) {
	if in.Resolved.Artifact == nil || !in.Resolved.Due || in.Resolved.Rejected != nil {
		return
	}
	record := in.Resolved.Record(in.Subject)
	edited := record != nil && in.Decided.Plan != nil && in.Resolved.Edits(in.Subject, record)
	if edited && !in.Decided.Writes() {
		record.Generation = in.Object.Generation
		record.Attempts = 0
		record.FailureTime = nil
	}
	if record == nil || in.Resolved.Lifted || edited && in.Decided.Writes() {
		record = in.newRecord()
	}
	in.recordOrigins(record)
	in.recordNames(record)
	if plan := in.Object.Status.Plan; record.Outcome != v1alpha1.OutcomeHealthy && plan != nil && plan.Revision == record.Revision {
		record.Create = plan.Create
		record.Update = plan.Update
		record.Delete = plan.Delete
		record.Plan = plan.Digest
	}
}

// newRecord supersedes the revision that was tried before.
func (in *Input) newRecord() *v1alpha1.RevisionRecord {
	status := &in.Object.Status
	if len(status.History) > 0 && status.History[0].Outcome == "" {
		finish(&status.History[0], v1alpha1.OutcomeSuperseded, "", in)
	}
	status.History = slices.Insert(status.History, 0, v1alpha1.RevisionRecord{
		Revision: in.Resolved.Revision(), Digest: in.Resolved.Artifact.Digest, Generation: in.Object.Generation, StartTime: pipeline.StatusTime(in.Now),
	})
	return &status.History[0]
}

// setHistory records the outcome of the revision.
func setHistory(in *Input, err error) {
	status := &in.Object.Status
	if record := in.Resolved.Record(in.Subject); record != nil {
		settleRecord(in, record, err)
	}
	if limit := effective.HistoryLimit(&in.Object.Spec); len(status.History) > limit {
		status.History = status.History[:limit]
	}
	boundOrigins(status.History)
}

// settleRecord sets the outcome of a record; the first line that holds decides. A
// revision that was healthy once stays Healthy in the history.
//
//	it has been rejected, and the other one is healthy   RolledBack
//	it is healthy                                        Healthy
//	it cannot be installed, or is not healthy            Failed
func settleRecord(in *Input, record *v1alpha1.RevisionRecord, err error) {
	well := err == nil && in.Delivered.WaitsFor == "" && in.Delivered.Hooks.Waits == "" && in.Settled.Health != nil && in.Settled.Health.Healthy()
	switch {
	case record.Outcome == v1alpha1.OutcomeHealthy, record.Outcome == v1alpha1.OutcomeRolledBack:
	case in.Resolved.Rejected != nil && well:
		finish(record, v1alpha1.OutcomeRolledBack, record.Message, in)
	case in.Resolved.Rejected != nil:
	case well:
		record.Attempts, record.FailureTime = 0, nil
		finish(record, v1alpha1.OutcomeHealthy, "", in)
	default:
		if why := in.whyFailed(err); why != "" {
			finish(record, v1alpha1.OutcomeFailed, why, in)
		}
	}
}

func finish(record *v1alpha1.RevisionRecord, outcome v1alpha1.Outcome, message string, in *Input) {
	if record.Outcome != outcome {
		record.CompletionTime = new(pipeline.StatusTime(in.Now))
	}
	record.Outcome, record.Message = outcome, pipeline.Shorten(message, longestCause)
}

// whyFailed says why the revision is not installed, or not healthy; empty if it is, or
// if the cause is unknown.
func (in *Input) whyFailed(err error) string {
	var known failure.Error
	switch {
	case errors.As(err, &known) && !known.Waiting && known.Reason != v1alpha1.ReasonFailed && in.Condition != "":
		return known.Reason + ": " + known.Error()
	case err != nil:
		return ""
	case in.Delivered.WaitsFor != "":
		if reason, over := in.waiting(); over {
			return reason + ": " + in.Delivered.WaitsFor
		}
	}
	if healthy := conditions.Get(in.Object, v1alpha1.HealthyCondition); in.Settled.Health != nil && healthy != nil && healthy.Status == metav1.ConditionFalse {
		return healthy.Reason + ": " + healthy.Message
	}
	return ""
}

// recordOrigins records where the revision was fetched from last, since another digest
// may have the same content.
func (in *Input) recordOrigins(record *v1alpha1.RevisionRecord) {
	if in.Resolved.Source != nil && len(in.Resolved.Source.Parts) > 0 {
		record.Sources = in.Resolved.Source.Parts
	}
}

// recordNames records the names of the revision for people. The origin is that with which it was first tried, also when
// another commit or tag has the same content.
func (in *Input) recordNames(record *v1alpha1.RevisionRecord) {
	in.Resolved.RecordBundle(in.Object, record)
	if record.OriginRevision == "" {
		record.OriginRevision = in.Resolved.OriginRevision
	}
	if in.Rendered.Converted || record.Version == "" {
		record.Version = revision.Version(in.Rendered.Version, record.OriginRevision)
	}
}

// mostOrigins bounds the origins of revisions in the history, in bytes.
const mostOrigins = 32 << 10

// boundOrigins keeps the origins of the newest revisions within the limit.
func boundOrigins(history []v1alpha1.RevisionRecord) {
	room := mostOrigins
	for i := range history {
		for _, o := range history[i].Sources {
			room -= len(o.Destination) + len(o.Image) + len(o.Git) + len(o.Path) + len(o.URL) + len(o.Helm) + len(o.Chart) + len(o.ConfigMap) + len(o.Reference) + len(o.Digest)
		}
		if room < 0 {
			history[i].Sources = nil
		}
	}
}
