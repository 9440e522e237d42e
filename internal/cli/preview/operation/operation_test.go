// SPDX-License-Identifier: Apache-2.0

package operation_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/cli/preview/operation"
)

// TestHooksThatRun compares the hooks of a preview with the operation that the controller would begin or continue.
func TestHooksThatRun(t *testing.T) {
	hook := func(name string, events ...string) plan.HookObject {
		return plan.HookObject{HookTerms: plan.HookTerms{Events: events}, Object: plan.Object{ID: inventory.ID{Group: "batch", Kind: "Job", Namespace: "shop", Name: name}}}
	}
	hooks := []plan.HookObject{
		hook("a", plan.PreInstall, plan.PreUpgrade), hook("b", plan.PreUpgrade), hook("c", plan.PostInstall, plan.PostUpgrade), hook("d", plan.PreDelete),
	}
	action := func(kind string, verb plan.Verb) plan.Action {
		return plan.Action{Object: plan.Object{ID: inventory.ID{Kind: kind, Namespace: "shop", Name: "x"}}, Verb: verb}
	}
	now := metav1.Now()
	upgrade := func(change func(*v1alpha1.HooksStatus)) *v1alpha1.HooksStatus {
		status := &v1alpha1.HooksStatus{Operation: v1alpha1.HookUpgrade, Content: "this", Digest: "artifact", Revision: "v1", Inputs: "inputs"}
		change(status)
		return status
	}
	finished := upgrade(func(h *v1alpha1.HooksStatus) { h.CompletionTime = &now })
	for name, tt := range map[string]struct {
		reason string
		status v1alpha1.BundleDeploymentStatus
		change func(*operation.Facts)
		want   string
	}{
		"first": {reason: "nothing was applied", want: "pre-install a, post-install c"},
		"adopted": {reason: "the workloads ran before", change: func(f *operation.Facts) {
			f.Plan.Stages = []plan.Stage{{Actions: []plan.Action{action("ConfigMap", plan.Adopt)}}}
		}},
		"taking over":  {reason: "the operation goes on although no workload is adopted now", status: v1alpha1.BundleDeploymentStatus{Hooks: &v1alpha1.HooksStatus{Operation: v1alpha1.HookAdopt, Content: "former"}}},
		"first hooks":  {reason: "the applied revision had none", status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v0"}}, want: "pre-upgrade a, pre-upgrade b, post-upgrade c"},
		"finished":     {reason: "the hooks of this content have run", status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v1"}, Hooks: finished}},
		"commit":       {reason: "another artifact with the same content", status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v1"}, Hooks: finished}, change: func(f *operation.Facts) { f.Artifact = "other" }},
		"under way":    {reason: "the first has run", status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v0"}, Hooks: upgrade(func(h *v1alpha1.HooksStatus) { h.Completed = 1 })}, want: "pre-upgrade b, post-upgrade c"},
		"failed":       {reason: "hooks of the event run again", status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v0"}, Hooks: upgrade(func(h *v1alpha1.HooksStatus) { h.Completed, h.Failed = 1, failedHook(plan.PreUpgrade) })}, want: "pre-upgrade a, pre-upgrade b, post-upgrade c"},
		"failed after": {reason: "those before do not", status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v0"}, Hooks: upgrade(func(h *v1alpha1.HooksStatus) { h.Completed, h.Failed = 2, failedHook(plan.PostUpgrade) })}, want: "post-upgrade c"},
		"pending": {
			reason: "the plan waits for approval, and the status still has the operation before it",
			status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v0"}, Plan: &v1alpha1.PlanStatus{Content: "this"}, Hooks: upgrade(func(h *v1alpha1.HooksStatus) { h.Content, h.Digest, h.CompletionTime = "former", "former", &now })},
			want:   "pre-upgrade a, pre-upgrade b, post-upgrade c",
		},
		"secret in the bundle": {
			reason: "its values are not part of the digest of the content",
			status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v1"}, Hooks: finished},
			change: func(f *operation.Facts) {
				f.Artifact, f.Plan.Stages = "other", []plan.Stage{{Actions: []plan.Action{action("Secret", plan.Update)}}}
			},
			want: "pre-upgrade a, pre-upgrade b, post-upgrade c",
		},
		"same inputs": {
			reason: "values of a Secret did not change",
			status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v1"}, Plan: &v1alpha1.PlanStatus{Revision: "v1", Inputs: "inputs"}, Hooks: finished},
			change: func(f *operation.Facts) { f.Secret, f.Planned = true, true },
		},
		"other inputs": {
			reason: "values of a Secret changed, and the plan waits",
			status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v1"}, Plan: &v1alpha1.PlanStatus{Revision: "v1", Inputs: "newer"}, Hooks: finished},
			change: func(f *operation.Facts) { f.Secret, f.Planned = true, true },
			want:   "pre-upgrade a, pre-upgrade b, post-upgrade c",
		},
		"recovered": {reason: "the status was lost, and this revision is applied", status: v1alpha1.BundleDeploymentStatus{Applied: v1alpha1.AppliedRevision{Revision: "v1"}, Inventory: &v1alpha1.Inventory{Recovered: true}}},
		"deleted":   {reason: "nothing is installed any more", change: func(f *operation.Facts) { f.Deployment.DeletionTimestamp = &now }},
	} {
		t.Run(name, func(t *testing.T) {
			f := operation.Facts{
				Deployment: &v1alpha1.BundleDeployment{Status: tt.status}, Plan: plan.Plan{Hooks: hooks}, Content: "this", Artifact: "artifact", Revision: "v1",
			}
			if tt.change != nil {
				tt.change(&f)
			}
			runs, afterRetry := f.Hooks()
			if failed := tt.status.Hooks != nil && tt.status.Hooks.Failed != nil; afterRetry != failed {
				t.Errorf("after a retry: %v", afterRetry)
			}
			var got []string
			for _, run := range runs {
				got = append(got, run.Event+" "+run.Name)
			}
			if shown := strings.Join(got, ", "); shown != tt.want {
				t.Errorf("%s: %q, want %q", tt.reason, shown, tt.want)
			}
		})
	}
}

func failedHook(event string) *v1alpha1.FailedHook {
	return &v1alpha1.FailedHook{HookReference: v1alpha1.HookReference{Event: event}}
}
