// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// fleet is a rollout of a canary, and of prod in a wave that needs an approval.
func fleet(uid string, change ...func(*v1alpha1.BundleRolloutSpec)) *v1alpha1.BundleRollout {
	selector := func(env string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
	}
	cluster := func(name string) v1alpha1.RolloutClusters {
		return v1alpha1.RolloutClusters{Cluster: &v1alpha1.RolloutCluster{
			Name: name, Labels: map[string]string{"env": name}, ServiceAccountName: "installer",
			ClusterReference: v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: name}}},
		}}
	}
	of := &v1alpha1.BundleRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "waves", Name: "fleet", UID: types.UID(uid)}}
	of.Spec.Clusters = []v1alpha1.RolloutClusters{cluster("canary"), cluster("prod")}
	of.Spec.Strategy.Waves = []v1alpha1.RolloutWave{
		{Name: "canary", Selector: selector("canary")}, {Name: "prod", Selector: selector("prod"), Approval: v1alpha1.WaveApprovalBefore},
	}
	for _, change := range change {
		change(&of.Spec)
	}
	return of
}

func markOf(t *testing.T, of *v1alpha1.BundleRollout) string {
	t.Helper()
	mark, err := Mark(of)
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// TestR40Takeover: which rollouts take over the BundleDeployments of a former one without an approver.
func TestR40Takeover(t *testing.T) {
	former := fleet("former")
	first := func(spec *v1alpha1.BundleRolloutSpec) *v1alpha1.RolloutCluster { return spec.Clusters[1].Cluster }
	tests := map[string]struct {
		reason string
		change func(*v1alpha1.BundleRolloutSpec)
		waits  bool
	}{
		"the same":          {"it was restored", func(*v1alpha1.BundleRolloutSpec) {}, false},
		"another template":  {"goes through the waves", func(s *v1alpha1.BundleRolloutSpec) { s.Template.Spec.Raw = []byte(`{"path":"b"}`) }, false},
		"annotations":       {"are for variables", func(s *v1alpha1.BundleRolloutSpec) { first(s).Annotations = map[string]string{"a": "b"} }, false},
		"concurrency":       {"is no gate", func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves[1].Soak.Duration = time.Hour }, false},
		"no approval":       {"red-A5", func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves[1].Approval = "" }, true},
		"approval None":     {"the same in words", func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves[1].Approval = v1alpha1.WaveApprovalNone }, true},
		"approval after":    {"the cluster has it by then", func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves[1].Approval = v1alpha1.WaveApprovalAfter }, true},
		"no waves":          {"one wave of all", func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves = nil }, true},
		"label":             {"another wave", func(s *v1alpha1.BundleRolloutSpec) { first(s).Labels["env"] = "canary" }, true},
		"other clusters":    {"red-A5, with an approval of before", func(s *v1alpha1.BundleRolloutSpec) { first(s).Name = "evil" }, true},
		"one more cluster":  {"it may be the same one", func(s *v1alpha1.BundleRolloutSpec) { s.Clusters = append(s.Clusters, s.Clusters[0]) }, true},
		"order of clusters": {"the first entry counts", func(s *v1alpha1.BundleRolloutSpec) { s.Clusters[0], s.Clusters[1] = s.Clusters[1], s.Clusters[0] }, true},
		"order of waves": {"prod would be selected first", func(s *v1alpha1.BundleRolloutSpec) {
			s.Strategy.Waves[0], s.Strategy.Waves[1] = s.Strategy.Waves[1], s.Strategy.Waves[0]
		}, true},
		"selector":       {"another wave", func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves[0].Selector = metav1.LabelSelector{} }, true},
		"kubeconfig":     {"another cluster", func(s *v1alpha1.BundleRolloutSpec) { first(s).ClusterReference.KubeConfig.SecretRef.Name = "canary" }, true},
		"key":            {"another cluster", func(s *v1alpha1.BundleRolloutSpec) { first(s).ClusterReference.KubeConfig.SecretRef.Key = "other" }, true},
		"remote account": {"other permissions", func(s *v1alpha1.BundleRolloutSpec) { first(s).ServiceAccountName = "admin" }, true},
		"unmatched":      {"other clusters", func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.UnmatchedClusters = v1alpha1.UnmatchedExclude }, true},
		"all wait": {"nothing begins without an approval", func(s *v1alpha1.BundleRolloutSpec) {
			s.Strategy.Waves[0].Approval = v1alpha1.WaveApprovalBoth
			s.Strategy.UnmatchedClusters = v1alpha1.UnmatchedExclude
			first(s).Labels["env"] = "canary"
		}, false},
		"all but unmatched": {"the last wave is free", func(s *v1alpha1.BundleRolloutSpec) {
			s.Strategy.Waves[0].Approval = v1alpha1.WaveApprovalBefore
			first(s).Labels["env"] = "none"
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			marks := map[string]string{"canary": markOf(t, former), "other": ""}
			later := fleet("later", tc.change)
			decided, err := Decide(later, marks, nil, now)
			if err != nil || decided.Waits() != tc.waits {
				t.Fatalf("%s: %+v, %v", tc.reason, decided, err)
			}
			if same, err := Decide(later, map[string]string{"canary": markOf(t, later)}, nil, now); err != nil || same.Waits() || len(same.Clusters) > 0 {
				t.Errorf("its own BundleDeployments: %+v, %v", same, err)
			}
			if !tc.waits {
				return
			}
			approve := rollout.Approval{Name: "a", Plan: decided.Plan}
			for what, one := range map[string][]rollout.Approval{
				"of another plan": {{Name: "a", Plan: "sha256:0"}},
				"consumed":        {{Name: "a", Plan: decided.Plan, Consumed: true}},
				"expired":         {{Name: "a", Plan: decided.Plan, Expires: now}},
				"denied":          {approve, {Name: "b", Plan: decided.Plan, Denies: true}},
			} {
				if got, err := Decide(later, marks, one, now); err != nil || !got.Waits() {
					t.Errorf("%s: %+v, %v", what, got, err)
				}
			}
			if got, err := Decide(later, marks, []rollout.Approval{approve}, now); err != nil || got.Waits() || got.Approval != "a" {
				t.Errorf("approved: %+v, %v", got, err)
			}
			if again, err := Decide(fleet("third", tc.change), marks, []rollout.Approval{approve}, now); err != nil || !again.Waits() {
				t.Errorf("the approval is accepted by another rollout: %+v, %v", again, err)
			}
		})
	}
}

// Forged marks do not open anything.
func TestR40ForgedMarks(t *testing.T) {
	open := fleet("later", func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves[1].Approval = "" })
	for mark, waits := range map[string]bool{"": false, "later/x": false, "x": true, "/": true, "/later": true, "former/": true, "later": false} {
		if got, err := Decide(open, map[string]string{"c": mark}, nil, now); err != nil || got.Waits() != waits {
			t.Errorf("%q: %+v, %v", mark, got, err)
		}
	}
	if mark := markOf(t, open); mark != "" {
		t.Errorf("a rollout without approvals marks with %s", mark)
	}
}
