// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/identity"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// reference names a remote cluster.
var reference = &v1alpha1.ClusterReference{ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: "c1"}}

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// child is the BundleDeployment of a remote cluster, with the reason of Ready; "" for True.
func child(target, reason string, change ...func(*v1alpha1.BundleDeployment)) *v1alpha1.BundleDeployment {
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now)}}
	d.Spec.Target.ClusterReference = effective.ClusterReference(reference)
	d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason}}
	if reason == "" {
		d.Status.Conditions[0].Status = metav1.ConditionTrue
	}
	if target != "" {
		d.Status.Inventory = &v1alpha1.Inventory{Target: target}
		d.Status.Internal.Server = "server of " + target
	}
	for _, change := range change {
		change(d)
	}
	return d
}

// TestR41Names reads what is known of the names of clusters from their BundleDeployments.
func TestR41Names(t *testing.T) {
	strategy, err := rollout.ReadStrategy(&v1alpha1.RolloutStrategy{
		Waves:             []v1alpha1.RolloutWave{{Name: "a", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"in": "a"}}}},
		UnmatchedClusters: v1alpha1.UnmatchedExclude,
	})
	if err != nil {
		t.Fatal(err)
	}
	remote := revision.Cluster{KubeConfig: reference, Labels: map[string]string{"in": "a"}}
	excluded := revision.Cluster{KubeConfig: reference}
	selected := identity.Name{Selected: true, Target: "t", Server: "server of t", Created: now, Compared: true}
	for name, tc := range map[string]struct {
		reason  string
		cluster *revision.Cluster
		child   *v1alpha1.BundleDeployment
		want    identity.Name // the zero value: it is not compared at all
	}{
		"ready":                {"it has a plan", &remote, child("t", ""), selected},
		"refused":              {"it says what it wants", &remote, child("t", v1alpha1.ReasonPlanRefused), selected},
		"refused before":       {"its spec has changed since", &remote, child("t", v1alpha1.ReasonPlanRefused, func(d *v1alpha1.BundleDeployment) { d.Generation = 2 }), identity.Name{Selected: true, Target: "t", Server: "server of t", Created: now}},
		"failed":               {"nothing says what it wants", &remote, child("t", v1alpha1.ReasonConversionFailed), identity.Name{Selected: true, Target: "t", Server: "server of t", Created: now}},
		"failed, was applied":  {"it has what it wants", &remote, child("t", v1alpha1.ReasonConversionFailed, func(d *v1alpha1.BundleDeployment) { d.Status.Applied.Revision = "v1" }), selected},
		"reaches another":      {"which one is not known", &remote, child("t", v1alpha1.ReasonTargetChanged), identity.Name{Selected: true, Created: now}},
		"not reached":          {"it may be any", &remote, child("", v1alpha1.ReasonClusterUnreachable), identity.Name{Selected: true, Created: now}},
		"not started":          {"it waits for its wave", &remote, nil, identity.Name{Selected: true}},
		"excluded":             {"it is never started", &excluded, nil, identity.Name{}},
		"excluded, with child": {"it was started before", &excluded, child("t", ""), selected},
		"this cluster":         {"names of it are no other clusters", &revision.Cluster{Labels: remote.Labels}, child("t", "", func(d *v1alpha1.BundleDeployment) { d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{} }), identity.Name{}},
		"left":                 {"its objects are there", nil, child("t", ""), identity.Name{Left: now, Target: "t", Server: "server of t", Created: now, Compared: true}},
		"left, another":        {"its objects are in the former one", nil, child("t", v1alpha1.ReasonTargetChanged), identity.Name{Left: now, Target: "t", Server: "server of t", Created: now}},
	} {
		t.Run(name, func(t *testing.T) {
			children, clusters := map[string]*v1alpha1.BundleDeployment{}, map[string]revision.Cluster{}
			if tc.child != nil {
				children["x"] = tc.child
			}
			if tc.cluster != nil {
				clusters["x"] = *tc.cluster
			}
			var memory Memory
			got := memory.Names(children, clusters, strategy, now)
			if diff := cmp.Diff(tc.want, got["x"]); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if again := memory.Names(children, clusters, strategy, now.Add(time.Hour)); !again["x"].Left.Equal(got["x"].Left) {
				t.Errorf("it left at %s, and before at %s", again["x"].Left, got["x"].Left)
			}
			memory.Names(children, map[string]revision.Cluster{"x": remote}, strategy, now)
			if later := memory.Names(children, nil, strategy, now.Add(time.Hour)); tc.child != nil && effective.IsRemote(tc.child.Spec.Target.ClusterReference) && !later["x"].Left.Equal(now.Add(time.Hour)) {
				t.Errorf("it was selected in between, and left at %s", later["x"].Left)
			}
		})
	}
}

// TestR41JustTakenOver: a BundleDeployment that was refused the objects of another name is held for some time after that is gone.
func TestR41JustTakenOver(t *testing.T) {
	refused := child("t", v1alpha1.ReasonPlanRefused)
	two := map[string]identity.Name{"new": {Selected: true, Target: "t"}, "old": {Target: "t"}}
	one := map[string]identity.Name{"new": {Selected: true, Target: "t"}}
	var memory Memory
	for _, step := range []struct {
		reason string
		names  map[string]identity.Name
		child  *v1alpha1.BundleDeployment
		after  time.Duration
		held   bool
	}{
		{"no other name", one, refused, 0, false},
		{"another name", two, refused, 0, true},
		{"it is gone", one, refused, time.Second, true},
		{"it is reconciled", one, child("t", v1alpha1.ReasonConversionFailed), 2 * time.Second, false},
		{"it is refused for long", one, refused, time.Hour, false},
		{"and once more", one, refused, time.Second, false},
	} {
		if got := memory.Duplicates(step.names, map[string]*v1alpha1.BundleDeployment{"new": step.child}, now.Add(step.after))["new"]; got != step.held {
			t.Errorf("%s: held is %v", step.reason, got)
		}
	}
}

// TestR41Leavers: what counts for the limit of removals, and what waits.
func TestR41Leavers(t *testing.T) {
	children := map[string]*v1alpha1.BundleDeployment{
		"selected": child("a", ""), "moves": child("b", ""), "waits": child("c", ""), "leaves": child("d", ""), "claimed": child("e", ""),
		"approved": child("f", "", func(d *v1alpha1.BundleDeployment) {
			d.Annotations = map[string]string{v1alpha1.RolloutReleasedAnnotation: "u/sha256:1"}
		}),
	}
	moves := map[string]identity.Leaving{
		"moves": {Successor: "x", Proven: true}, "waits": {Successor: "y", Proven: true, Waits: "because"},
		"claimed": {Successor: "z"}, "approved": {Successor: "z"},
	}
	got := Leavers(children, map[string]revision.Cluster{"selected": {}}, moves, types.UID("u"))
	want := []rollout.Leaver{
		{Name: "approved", Wave: rollout.Excluded, Released: true}, {Name: "claimed", Wave: rollout.Excluded},
		{Name: "leaves", Wave: rollout.Excluded}, {Name: "moves", Wave: rollout.Excluded, Released: true},
		{Name: "waits", Wave: rollout.Excluded, Released: true, Waits: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestR41Redirects: which removals reach their cluster as the other name does.
func TestR41Redirects(t *testing.T) {
	removing := func(reason string, hooks int32) *v1alpha1.BundleDeployment {
		return child("t", "", func(d *v1alpha1.BundleDeployment) {
			d.DeletionTimestamp = &metav1.Time{Time: now}
			d.Status.Hooks = &v1alpha1.HooksStatus{OnDelete: hooks}
			d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: v1alpha1.RemovalBlockedCondition, Status: metav1.ConditionTrue, Reason: reason})
		})
	}
	proven, claimed := identity.Leaving{Successor: "x", Proven: true}, identity.Leaving{Successor: "x"}
	for name, tc := range map[string]struct {
		reason  string
		child   *v1alpha1.BundleDeployment
		leaving identity.Leaving
		want    bool
	}{
		"leaves":                        {"nothing takes over", removing(v1alpha1.ReasonKubeConfigNotFound, 0), identity.Leaving{}, false},
		"same server":                   {"it is proven", child("t", ""), proven, true},
		"same server, hooks":            {"they reach the same server", removing(v1alpha1.ReasonKubeConfigNotFound, 1), proven, true},
		"same server, waits":            {"the other name is not compared", child("t", ""), identity.Leaving{Successor: "x", Proven: true, Waits: "because"}, false},
		"another server":                {"its own kubeconfig is not known to be gone", child("t", ""), claimed, false},
		"another server, unreachable":   {"its own kubeconfig is there", removing(v1alpha1.ReasonClusterUnreachable, 0), claimed, false},
		"another server, gone":          {"nothing else leads there", removing(v1alpha1.ReasonKubeConfigNotFound, 0), claimed, true},
		"another server, gone, hooks":   {"they have Secrets of the former cluster", removing(v1alpha1.ReasonKubeConfigNotFound, 1), claimed, false},
		"another server, gone, waiting": {"the other name is not compared", removing(v1alpha1.ReasonKubeConfigNotFound, 0), identity.Leaving{Successor: "x", Waits: "because"}, false},
	} {
		if got := Redirects(tc.child, tc.leaving); got != tc.want {
			t.Errorf("%s: %s, and it is %v", name, tc.reason, got)
		}
	}
}
