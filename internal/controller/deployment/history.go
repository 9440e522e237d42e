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

// currentRecord is the record of the revision that is tried or applied; nil when there
// is none. While the source's revision is rejected it is the record of that one.
func (s *state) currentRecord() *v1alpha1.RevisionRecord {
	history, revision := s.object.Status.History, s.revision()
	if s.resolved.rejected != nil {
		revision = s.resolved.rejected.Revision
	}
	if len(history) == 0 || history[0].Revision != revision {
		return nil
	}
	return &history[0]
}

// beginRecord puts the revision that is tried at the head of the history: a new one, a
// rejected one that is tried again, or one with a changed spec or inputs.
func beginRecord(s *state) {
	if s.resolved.artifact == nil || !s.resolved.due || s.resolved.rejected != nil {
		return
	}
	record := s.currentRecord()
	edited := record != nil && s.decided.plan != nil && s.edits(record)
	if edited && !s.writes() {
		record.Generation, record.Attempts, record.LastFailedTime = s.object.Generation, 0, nil
	}
	if record == nil || s.resolved.lifted || edited && s.writes() {
		record = s.newRecord()
	}
	s.recordOrigins(record)
	if plan := s.object.Status.Plan; record.Outcome != v1alpha1.OutcomeHealthy && plan != nil && plan.Revision == record.Revision {
		record.Create, record.Update, record.Delete, record.Plan = plan.Create, plan.Update, plan.Delete, plan.Digest
	}
}

// edits tells whether the spec or its inputs changed since a revision was tried.
func (s *state) edits(record *v1alpha1.RevisionRecord) bool {
	return record.Generation != s.object.Generation || s.changedInputs()
}

// newRecord supersedes the revision that was tried before.
func (s *state) newRecord() *v1alpha1.RevisionRecord {
	status := &s.object.Status
	if len(status.History) > 0 && status.History[0].Outcome == "" {
		finish(&status.History[0], v1alpha1.OutcomeSuperseded, "", s)
	}
	status.History = slices.Insert(status.History, 0, v1alpha1.RevisionRecord{
		Revision: s.revision(), Digest: s.resolved.artifact.Digest, Generation: s.object.Generation, StartedTime: pipeline.StatusTime(s.now),
	})
	s.resolved.lifted = false
	return &status.History[0]
}

// setHistory records the outcome of the revision.
func setHistory(s *state, err error) {
	status := &s.object.Status
	if record := s.currentRecord(); record != nil {
		settleRecord(s, record, err)
	}
	if limit := s.object.Spec.HistoryLimitOrDefault(); len(status.History) > limit {
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
	well := err == nil && s.delivered.waitsFor == "" && s.settled.hookWaits == "" && s.settled.health != nil && s.settled.health.Healthy()
	switch {
	case record.Outcome == v1alpha1.OutcomeHealthy, record.Outcome == v1alpha1.OutcomeRolledBack:
	case s.resolved.rejected != nil && well:
		finish(record, v1alpha1.OutcomeRolledBack, record.Message, s)
	case s.resolved.rejected != nil:
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
		record.FinishedTime = new(pipeline.StatusTime(s.now))
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
	case s.delivered.waitsFor != "":
		if reason, over := s.waiting(); over {
			return reason + ": " + s.delivered.waitsFor
		}
	}
	if healthy := conditions.Get(s.object, v1alpha1.HealthyCondition); s.settled.health != nil && healthy != nil && healthy.Status == metav1.ConditionFalse {
		return healthy.Reason + ": " + healthy.Message
	}
	return ""
}

// recordOrigins records where the revision was fetched from last, since another digest
// may have the same content.
func (s *state) recordOrigins(record *v1alpha1.RevisionRecord) {
	if s.resolved.source != nil && len(s.resolved.source.Parts) > 0 {
		record.Sources = s.resolved.source.Parts
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
