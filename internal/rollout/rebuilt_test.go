// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestRebuilt is R31: which clusters are replaced, and what is said of the others.
func TestRebuilt(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		change  func(*Input, *Fact)
		remedy  string // empty: it does not count as rebuilt
		replace bool
	}{
		"replaced":          {reason: "another control plane, another object, and Abandon", remedy: remedyReplaced, replace: true},
		"the same object":   {reason: "the kubeconfig may be wrong", remedy: remedyByHand, change: func(_ *Input, f *Fact) { f.ClusterUID = "u1" }},
		"from a Secret":     {reason: "its UID tells nothing", remedy: remedyByHand, change: func(_ *Input, f *Fact) { f.ClusterUID = "" }},
		"of before":         {reason: "it was started by an older version", remedy: remedyByHand, change: func(_ *Input, f *Fact) { f.Child.ClusterUID = "" }},
		"ready since":       {reason: "the new object led to the former cluster", remedy: remedyByHand, change: func(_ *Input, f *Fact) { f.Child.LastHealthy = f.ClusterCreated.Add(time.Second) }},
		"Wait":              {reason: "the default", remedy: remedyAbandon, change: func(in *Input, _ *Fact) { in.Abandon = false }},
		"rollout suspended": {reason: "a suspended rollout removes nothing", remedy: remedySuspended, change: func(in *Input, _ *Fact) { in.Suspended = true }},
		"not listed":        {reason: "the object may be an old one", remedy: remedySuspended, change: func(in *Input, _ *Fact) { in.Known = false }},
		"suspended":         {reason: "a person holds it", change: func(_ *Input, f *Fact) { f.Child.Suspended = true }},
		"two names":         {reason: "which one is right?", change: func(_ *Input, f *Fact) { f.Duplicate = true }},
		"in no wave":        {reason: "it would not be created again", change: func(_ *Input, f *Fact) { f.Wave = Excluded }},
		"no spec":           {reason: "it could not be created again", remedy: remedyReplaced, change: func(_ *Input, f *Fact) { f.Invalid = "no value" }},
		"the same cluster":  {reason: "the object was created again, as by a restore", change: func(_ *Input, f *Fact) { f.Child.OtherTarget = false }},
		"a start under way": {reason: "it is not known what that finds", change: func(in *Input, _ *Fact) {
			in.Starting = []v1alpha1.RolloutStart{{Cluster: "c", Revision: "r2", Start: 8}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			fact := updatedFact()
			fact.Child.Ready, fact.Child.Reason, fact.Child.Stalled, fact.Child.OtherTarget = false, v1alpha1.ReasonTargetChanged, true, true
			fact.Child.ClusterUID, fact.ClusterUID = "u1", "u2"
			fact.Child.LastHealthy, fact.ClusterCreated = testStart.Add(-time.Hour), testStart.Add(-time.Minute)
			in := &Input{Now: testStart, Began: testStart.Add(-time.Hour), Update: testRevision("r2"), Strategy: defaultStrategy(t), Abandon: true, Known: true}
			if tc.change != nil {
				tc.change(in, &fact)
			}
			in.Clusters = []Fact{fact}
			got := Decide(in)
			if tc.remedy == "" {
				if len(got.Rebuilt) > 0 {
					t.Errorf("%s: got %+v", tc.reason, got.Rebuilt)
				}
				return
			}
			if len(got.Rebuilt) != 1 || got.Rebuilt[0] != (Rebuilt{"c", tc.replace, tc.remedy}) {
				t.Fatalf("%s: got %+v", tc.reason, got.Rebuilt)
			}
			worst := Worst(in, got)
			if len(worst) != 1 || worst[0].State != string(Held) || worst[0].Reason != v1alpha1.ReasonTargetChanged || worst[0].Message != tc.remedy {
				t.Errorf("status.worst: %+v", worst)
			}
		})
	}
	many := &Input{Now: testStart, Update: testRevision("r2"), Strategy: defaultStrategy(t), Abandon: true, Known: true}
	for range mostReplaced + 1 {
		many.Clusters = append(many.Clusters, Fact{ClusterUID: "u2", Child: &Child{OtherTarget: true, ClusterUID: "u1"}})
	}
	if got := Decide(many).Rebuilt; len(got) != mostReplaced+1 || got[mostReplaced].Replace || !got[mostReplaced-1].Replace {
		t.Errorf("%d clusters were rebuilt, want %d replaced", len(got), mostReplaced)
	}
}

// TestStartsWith tells which object stands for a cluster, as starts write it.
func TestStartsWith(t *testing.T) {
	for name, tc := range map[string]struct {
		child *Child
		uid   string
		want  string
	}{
		"new":                          {nil, "u2", "u2"},
		"new, of a Secret":             {nil, "", ""},
		"ready since":                  {&Child{ClusterUID: "u1", LastHealthy: testStart.Add(time.Second)}, "u2", "u2"},
		"not ready since":              {&Child{ClusterUID: "u1", LastHealthy: testStart}, "u2", "u1"},
		"never ready":                  {&Child{ClusterUID: "u1"}, "u2", "u1"},
		"of an older version":          {&Child{LastHealthy: testStart.Add(time.Second)}, "u2", "u2"},
		"of an older version, rebuilt": {&Child{LastHealthy: testStart.Add(-time.Second)}, "u2", ""},
		"rebuilt":                      {&Child{ClusterUID: "u1", OtherTarget: true, LastHealthy: testStart.Add(time.Second)}, "u2", "u1"},
		"from a Secret now":            {&Child{ClusterUID: "u1"}, "", ""},
	} {
		if got := StartsWith(tc.child, tc.uid, testStart); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestReachesAnother reads it from a BundleDeployment, also while its removal is blocked for that reason.
func TestReachesAnother(t *testing.T) {
	of := func(kind string, status metav1.ConditionStatus, reason string) bool {
		d := &v1alpha1.BundleDeployment{}
		d.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
		return ChildOf(d).OtherTarget
	}
	if !of("Ready", metav1.ConditionFalse, v1alpha1.ReasonTargetChanged) || !of(v1alpha1.RemovalBlockedCondition, metav1.ConditionTrue, v1alpha1.ReasonTargetChanged) {
		t.Error("it was not found out")
	}
	if of("Ready", metav1.ConditionTrue, v1alpha1.ReasonTargetChanged) || of("Ready", metav1.ConditionFalse, v1alpha1.ReasonClusterDenied) ||
		of(v1alpha1.RemovalBlockedCondition, metav1.ConditionTrue, v1alpha1.ReasonKubeConfigNotFound) {
		t.Error("it is the same cluster")
	}
}

// TestRemediesFit into a message of status.worst.
func TestRemediesFit(t *testing.T) {
	for _, remedy := range []string{remedyReplaced, remedySuspended, remedyAbandon, remedyByHand} {
		if len(remedy) > v1alpha1.MaxWorstMessage {
			t.Errorf("%d bytes: %s", len(remedy), remedy)
		}
	}
}
