// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/rollout/children"
	"github.com/satchel-dev/satchel/internal/controller/rollout/collect"
	"github.com/satchel-dev/satchel/internal/controller/rollout/removal"
	"github.com/satchel-dev/satchel/internal/rollout"
)

// TestTrim keeps what decisions, removals and the collection of revisions depend on, and drops most of the rest.
func TestTrim(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
	long := strings.Repeat("x", 500)
	child := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-c1", Generation: 4, DeletionTimestamp: &at, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: long}, {Manager: long}},
		Labels: map[string]string{v1alpha1.RolloutLabel: "shop", v1alpha1.ClusterLabel: "c1"},
		Annotations: map[string]string{
			v1alpha1.RolloutRevisionAnnotation: "r2", v1alpha1.RolloutSpecAnnotation: "v1:2", v1alpha1.RolloutStartAnnotation: "7",
			v1alpha1.RolloutStartedAnnotation: "2026-05-04T11:00:00Z", v1alpha1.RolloutReleasedAnnotation: "u1/sha256:1",
		},
	}}
	child.Spec.SourceRef = &v1alpha1.SourceReference{Name: "shop-r2"}
	child.Spec.Target.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "c1"}}}
	record := func(revision string, outcome v1alpha1.Outcome, after time.Duration) v1alpha1.RevisionRecord {
		finished := metav1.NewTime(at.Add(after))
		return v1alpha1.RevisionRecord{
			Revision: "v1@" + revision, Digest: long, Generation: 4, Outcome: outcome, StartTime: at, CompletionTime: &finished, Message: long, Plan: long,
		}
	}
	child.Status = v1alpha1.BundleDeploymentStatus{
		ObservedGeneration: 4, Rejected: v1alpha1.RejectedRevision{Revision: "v1@sha256:0"}, LastHandledReconcileAt: "2026-05-04T11:30:00Z",
		Internal:  v1alpha1.InternalStatus{Server: "server", Artifact: &v1alpha1.KeptArtifact{Source: "BundleSource/fleet/shop-r1"}},
		History:   []v1alpha1.RevisionRecord{record("sha256:2", v1alpha1.OutcomeFailed, time.Minute), record("sha256:1", v1alpha1.OutcomeHealthy, -time.Hour)},
		Inventory: &v1alpha1.Inventory{Target: "uid", Compressed: long + long},
		Hooks:     &v1alpha1.HooksStatus{OnDelete: 2, Material: long},
		Plan:      &v1alpha1.PlanStatus{Digest: long},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTargetChanged, Message: "it is another one", LastTransitionTime: at},
			{Type: "Stalled", Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTargetChanged, Message: long, LastTransitionTime: at},
			{Type: v1alpha1.ApprovalPendingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPruneHeld, Message: long},
			{Type: v1alpha1.RemovalBlockedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKubeConfigNotFound, Message: long},
		},
	}
	trimmed := child.DeepCopy()
	children.Trim(trimmed)
	seen := func(d *v1alpha1.BundleDeployment) []any {
		used := collect.Used(&v1alpha1.BundleRollout{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, nil, map[string]*v1alpha1.BundleDeployment{"c1": d})
		return []any{rollout.ChildOf(d), used, removal.Stuck(d), removal.LacksCluster(d), removal.Released(d, "u1"), children.OfStart(d), d.Spec, d.Status.Inventory.Target, d.Status.Internal.Server, d.Status.Hooks.OnDelete}
	}
	if diff := cmp.Diff(seen(child), seen(trimmed)); diff != "" {
		t.Errorf("what is read of it (-whole +trimmed):\n%s", diff)
	}
	size := func(d *v1alpha1.BundleDeployment) int {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	if before, after := size(child), size(trimmed); after > before/3 {
		t.Errorf("%d bytes of %d are left", after, before)
	}
}
