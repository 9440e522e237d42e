// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// announceDelay is how long a download takes before Reconciling is written. Most end sooner, and the write would be a third of
// the requests of a source.
const announceDelay = 500 * time.Millisecond

// announced runs the download and storing of a source, and writes Reconciling meanwhile if that takes long.
//
//	the status names an artifact that is no longer published  written before: it is withdrawn
//	a retry, with another artifact published                  not written: the condition keeps the failure
//	otherwise                                                 written after announceDelay
//
// If that write fails, which means mostly that the source was changed, the work is cancelled, and the error is that of the write.
func (r *Reconciler) announced(ctx context.Context, s *state, work func(context.Context) (pipeline.Outcome, error)) (pipeline.Outcome, error) {
	if conditions.IsFalse(s.object, meta.ReadyCondition) && s.object.Status.ObservedGeneration == s.object.Generation && s.published != nil {
		return work(ctx)
	}
	before, after := s.object, s.announcement()
	if s.published == nil && before.Status.Artifact != nil {
		if err := r.writer.Write(ctx, before, after); err != nil {
			return pipeline.Stop, err
		}
		s.object = after
		return work(ctx)
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	written := make(chan error, 1)
	timer := time.AfterFunc(announceDelay, func() {
		err := r.writer.Write(ctx, before, after)
		if err != nil {
			cancel()
		}
		written <- err
	})
	outcome, err := work(bounded)
	if timer.Stop() {
		return outcome, err
	}
	if failed := <-written; failed != nil {
		return pipeline.Stop, failed
	}
	s.object = after
	return outcome, err
}

// announcement is a copy of the source with the conditions of a download.
func (s *state) announcement() *v1alpha1.BundleSource {
	object := s.object.DeepCopy()
	message := "fetching " + describe(s.parts)
	conditions.Delete(object, meta.StalledCondition)
	pipeline.SetCondition(object, meta.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressing, message)
	if conditions.Get(object, meta.ReadyCondition) == nil {
		pipeline.SetCondition(object, meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, message)
	}
	if s.published == nil {
		object.Status.Artifact, object.Status.OriginRevision = nil, ""
	}
	return object
}

// describe names the references of parts in messages.
func describe(parts []fetch.Part) string {
	names := make([]string, 0, len(parts))
	for _, part := range parts {
		name := part.Resolved.Digest
		if part.Resolved.Reference != "" {
			name = part.Resolved.Reference
		}
		if name == "" {
			name = "the archive"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
