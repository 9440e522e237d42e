// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// InProgress is the outcome of a revision that has not ended.
const InProgress = "InProgress"

// History are the revisions of a rollout. Its JSON form is what rollout history -o json prints.
type History struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Current   string  `json:"current,omitempty"`
	Revisions []Ended `json:"revisions"`
}

// Ended is a revision, and how it ended.
type Ended struct {
	Name      string                     `json:"name"`
	Version   string                     `json:"version,omitempty"`
	Outcome   string                     `json:"outcome"`
	Updated   int32                      `json:"updated"`
	Failed    int32                      `json:"failed"`
	Began     *metav1.Time               `json:"began,omitempty"`
	Ended     *metav1.Time               `json:"ended,omitempty"`
	Approvals []v1alpha1.RolloutApproval `json:"approvals,omitempty"`
}

// NewHistory reads the history of a rollout, which begins with the revision that the waves get now.
func NewHistory(o *v1alpha1.BundleRollout) History {
	h := History{Namespace: o.Namespace, Name: o.Name, Revisions: []Ended{}}
	if current := o.Status.CurrentRevision; current != nil {
		h.Current = current.Name
	}
	if now := o.Status.UpdateRevision; now != nil && now.Name != h.Current && now.Name != o.Status.RejectedRevision {
		h.Revisions = append(h.Revisions, inProgress(o, now))
	}
	for i := range o.Status.History {
		record := &o.Status.History[i]
		h.Revisions = append(h.Revisions, Ended{
			Name: record.Name, Version: record.Revision, Outcome: string(record.Outcome), Updated: record.Updated, Failed: record.Failed,
			Began: record.StartTime, Ended: record.CompletionTime, Approvals: record.Approvals,
		})
	}
	return h
}

func inProgress(o *v1alpha1.BundleRollout, now *v1alpha1.RolloutRevision) Ended {
	one := Ended{Name: now.Name, Version: now.Revision, Outcome: InProgress, Began: now.StartTime}
	if counts := o.Status.Clusters; counts != nil {
		one.Updated = counts.Updated
		one.Failed = counts.Failed
	}
	for i := range o.Status.Waves {
		if wave := &o.Status.Waves[i]; wave.Approval != "" {
			one.Approvals = append(one.Approvals, v1alpha1.RolloutApproval{Wave: wave.Name, Name: wave.Approval})
		}
	}
	return one
}
