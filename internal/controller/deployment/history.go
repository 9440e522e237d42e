// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// longestCause bounds the message of a record in the history, in bytes.
const longestCause = 512

// beginRecord puts the revision that is tried at the head of the history: a new one, a
// rejected one that is tried again, or one with a changed spec or inputs.
func beginRecord(s *state) {
	if s.resolved.Artifact == nil || !s.resolved.Due || s.resolved.Rejected != nil {
		return
	}
	record := s.resolved.Record(&s.Subject)
	edited := record != nil && s.decided.Plan != nil && s.resolved.Edits(&s.Subject, record)
	if edited && !s.decided.Writes() {
		record.Generation, record.Attempts, record.LastFailedTime = s.Object.Generation, 0, nil
	}
	if record == nil || s.resolved.Lifted || edited && s.decided.Writes() {
		record = s.newRecord()
	}
	s.recordOrigins(record)
	if plan := s.Object.Status.Plan; record.Outcome != v1alpha1.OutcomeHealthy && plan != nil && plan.Revision == record.Revision {
		record.Create, record.Update, record.Delete, record.Plan = plan.Create, plan.Update, plan.Delete, plan.Digest
	}
}

// newRecord supersedes the revision that was tried before.
func (s *state) newRecord() *v1alpha1.RevisionRecord {
	status := &s.Object.Status
	if len(status.History) > 0 && status.History[0].Outcome == "" {
		finish(&status.History[0], v1alpha1.OutcomeSuperseded, "", s)
	}
	status.History = slices.Insert(status.History, 0, v1alpha1.RevisionRecord{
		Revision: s.resolved.Revision(), Digest: s.resolved.Artifact.Digest, Generation: s.Object.Generation, StartedTime: pipeline.StatusTime(s.Now),
	})
	s.resolved.Lifted = false
	return &status.History[0]
}

// setHistory records the outcome of the revision.
func setHistory(s *state, err error) {
	status := &s.Object.Status
	if record := s.resolved.Record(&s.Subject); record != nil {
		settleRecord(s, record, err)
	}
	if limit := s.Object.Spec.HistoryLimitOrDefault(); len(status.History) > limit {
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
func settleRecord(s *state, record *v1alpha1.RevisionRecord, err error) {
	well := err == nil && s.delivered.WaitsFor == "" && s.delivered.Hooks.Waits == "" && s.settled.Health != nil && s.settled.Health.Healthy()
	switch {
	case record.Outcome == v1alpha1.OutcomeHealthy, record.Outcome == v1alpha1.OutcomeRolledBack:
	case s.resolved.Rejected != nil && well:
		finish(record, v1alpha1.OutcomeRolledBack, record.Message, s)
	case s.resolved.Rejected != nil:
	case well:
		record.Attempts, record.LastFailedTime = 0, nil
		finish(record, v1alpha1.OutcomeHealthy, "", s)
	default:
		if why := s.whyFailed(err); why != "" {
			finish(record, v1alpha1.OutcomeFailed, why, s)
		}
	}
}

func finish(record *v1alpha1.RevisionRecord, outcome v1alpha1.Outcome, message string, s *state) {
	if record.Outcome != outcome {
		record.FinishedTime = new(pipeline.StatusTime(s.Now))
	}
	record.Outcome, record.Message = outcome, pipeline.Shorten(message, longestCause)
}

// whyFailed says why the revision is not installed, or not healthy; empty if it is, or
// if the cause is unknown.
func (s *state) whyFailed(err error) string {
	var known failure.Error
	switch {
	case errors.As(err, &known) && !known.Waiting && known.Reason != v1alpha1.ReasonFailed && declared(err).condition != "":
		return known.Reason + ": " + known.Error()
	case err != nil:
		return ""
	case s.delivered.WaitsFor != "":
		if reason, over := s.waiting(); over {
			return reason + ": " + s.delivered.WaitsFor
		}
	}
	if healthy := conditions.Get(s.Object, v1alpha1.HealthyCondition); s.settled.Health != nil && healthy != nil && healthy.Status == metav1.ConditionFalse {
		return healthy.Reason + ": " + healthy.Message
	}
	return ""
}

// recordOrigins records where the revision was fetched from last, since another digest
// may have the same content.
func (s *state) recordOrigins(record *v1alpha1.RevisionRecord) {
	if s.resolved.Source != nil && len(s.resolved.Source.Parts) > 0 {
		record.Sources = s.resolved.Source.Parts
	}
}

// mostOrigins bounds the origins of revisions in the history, in bytes.
const mostOrigins = 32 << 10

// boundOrigins keeps the origins of the newest revisions within the limit.
func boundOrigins(history []v1alpha1.RevisionRecord) {
	room := mostOrigins
	for i := range history {
		for _, o := range history[i].Sources {
			room -= len(o.Destination) + len(o.Image) + len(o.Git) + len(o.Directory) + len(o.URL) + len(o.ConfigMap) + len(o.Reference) + len(o.Digest)
		}
		if room < 0 {
			history[i].Sources = nil
		}
	}
}
