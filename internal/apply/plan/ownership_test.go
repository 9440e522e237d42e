// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// Which objects may be adopted: a letter for each of Prevent, IfUnmanaged and None;
// a adopts, o is ours already, and - is refused.
func TestClaims(t *testing.T) {
	theirs := []string{other.Manager()}
	tests := map[string]struct {
		reason string
		live   ownership.Live
		want   string
	}{
		"without owner":            {"a person created it", ownership.Live{Managers: []string{"kubectl"}}, "-aa"},
		"a tool's":                 {"its marks are those of a controller", ownership.Live{Tool: "Helm release x"}, "--a"},
		"controlled":               {"an owner reference says so", ownership.Live{Controller: "ReplicaSet web"}, "--a"},
		"labelled":                 {"labels of another deployment which never applied it count as its marks", ownership.Live{Owner: other, Managers: []string{"kubectl"}}, "--a"},
		"another deployment's":     {"T13: two deployments never conflict", ownership.Live{Owner: other, Managers: theirs}, "---"},
		"stripped of labels":       {"T13: it is the other one's still", ownership.Live{Managers: theirs}, "---"},
		"stripped of fields":       {"T13: only the labels are left, and no other manager wrote it", ownership.Live{Owner: other}, "---"},
		"hashed manager":           {"T13: a deployment with a long name is one", ownership.Live{Managers: []string{"satchel/0123"}}, "---"},
		"our labels":               {"they were forged", ownership.Live{Owner: owner, Managers: []string{"kubectl"}}, "-aa"},
		"our labels, their fields": {"T13: another client changed the other deployment's labels", ownership.Live{Owner: owner, Managers: theirs}, "---"},
		"ours":                     {"an apply was killed before it was recorded", ownership.Live{Owner: owner, Fields: fields}, "ooo"},
		"orphaned":                 {"it is to be adopted", ownership.Live{Orphaned: true, Tool: "Helm release x"}, "aaa"},
		"orphaned, and had":        {"T13: the mark does not take it from a deployment that has it", ownership.Live{Orphaned: true, Owner: other, Managers: theirs}, "---"},
		"orphaned, unlabelled":     {"a deployment that is gone for good had it", ownership.Live{Orphaned: true, Managers: theirs}, "aaa"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, protection := range []ownership.Protection{"", ownership.IfUnmanaged, ownership.None} {
				got += map[ownership.Claim]string{ownership.Foreign: "-", ownership.Owned: "o", ownership.Adoptable: "a"}[tc.live.ClaimOf(owner, protection)]
			}
			if got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// A refusal names a remedy, and never one that takes an object from another
// deployment.
func TestCollisionSaysTheWayOut(t *testing.T) {
	tests := map[string]struct {
		live      ownership.Live
		want, not string
	}{
		"without owner":        {ownership.Live{}, "spec.apply.collisionProtection to IfUnmanaged", "None"},
		"a tool's":             {ownership.Live{Tool: "Helm release x"}, "spec.apply.collisionProtection to None", "IfUnmanaged"},
		"another deployment's": {ownership.Live{Owner: other, Managers: []string{other.Manager()}}, "take the labels", "spec.apply.collisionProtection"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := violation.Collides(tc.live, one, owner).String()
			if !strings.Contains(got, tc.want) || strings.Contains(got, tc.not) {
				t.Error(got)
			}
		})
	}
}

// Unmark removes from an adopted object the labels and annotations of former owners, and the
// references by which it would be controlled or collected.
func TestUnmark(t *testing.T) {
	yes := true
	object := &metav1.ObjectMeta{
		Labels: map[string]string{
			"app.kubernetes.io/managed-by": "Helm", "olm.owner": "web.v1", "olm.owner.namespace": "shop", "olm.managed": "true",
			"satchel.dev/deployment": "other", "satchel.dev/namespace": "shop", "app": "web",
		},
		Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "web:apps", "note": "kept"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "web.v1"},
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: &yes},
			{APIVersion: "v1", Kind: "ConfigMap", Name: "kept"},
		},
	}
	want := map[string]any{
		"labels": map[string]any{
			"app.kubernetes.io/managed-by": nil, "olm.owner": nil, "olm.owner.namespace": nil, "olm.managed": nil,
			"satchel.dev/deployment": nil, "satchel.dev/namespace": nil,
		},
		"annotations":     map[string]any{inventory.AnnotationOrphaned: nil, "argocd.argoproj.io/tracking-id": nil},
		"ownerReferences": object.OwnerReferences[2:],
	}
	if diff := cmp.Diff(want, ownership.Unmark(object)); diff != "" {
		t.Error(diff)
	}
	object.Labels["app.kubernetes.io/managed-by"] = "us"
	if _, found := ownership.Unmark(object)["labels"].(map[string]any)["app.kubernetes.io/managed-by"]; found {
		t.Error("a label that says nothing of Helm goes")
	}
}
