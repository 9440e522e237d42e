// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/format"
)

// planned is a plan to keep, or apply, an object with a content.
func planned(content byte) *plan.Plan {
	object := plan.Object{ID: inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "a"}, Rendered: inventory.Hash{content}}
	object.Desired = &unstructured.Unstructured{Object: map[string]any{}}
	return &plan.Plan{Stages: []plan.Stage{{Actions: []plan.Action{{Object: object, Verb: plan.Unchanged}}}}}
}

// F56: the digests of plans have another version. What was approved goes on without another approval, if nothing changed.
func TestF56RecordsOfAnotherVersion(t *testing.T) {
	a := signing(t)
	listed := func(e inventory.Entry) inventory.Inventory {
		e.ID = inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
		return inventory.New("target", e)
	}
	applied := inventory.Entry{Rendered: inventory.Hash{1}, Fields: inventory.Hash{1}}
	for name, tc := range map[string]struct {
		made    *plan.Plan
		listed  inventory.Inventory
		change  func(*v1alpha1.BundleDeployment)
		version int
		carried bool
	}{
		"nothing changed":       {made: planned(1), listed: listed(applied), version: 99, carried: true},
		"an older version":      {made: planned(1), listed: listed(applied), version: 0, carried: true},
		"this version":          {made: planned(1), listed: listed(applied), version: format.Plan.Version},
		"another content":       {made: planned(2), listed: listed(applied), version: 99},
		"an unknown content":    {made: planned(1), listed: listed(inventory.Entry{Fields: inventory.Hash{1}}), version: 99},
		"begun":                 {made: planned(1), listed: listed(inventory.Entry{Rendered: inventory.Hash{1}, Fields: inventory.Hash{1}, Begun: true}), version: 99},
		"never applied":         {made: planned(1), listed: listed(inventory.Entry{Rendered: inventory.Hash{1}}), version: 99},
		"another object":        {made: planned(1), listed: inventory.New("target"), version: 99},
		"another account":       {made: planned(1), listed: listed(applied), version: 99, change: func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "other" }},
		"another cluster":       {made: planned(1), listed: listed(applied), version: 99, change: func(d *v1alpha1.BundleDeployment) { d.Spec.KubeConfig = nil }},
		"another end":           {made: planned(1), listed: listed(applied), version: 99, change: func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = "" }},
		"a record that is none": {made: planned(1), listed: listed(applied), version: 99, change: func(d *v1alpha1.BundleDeployment) { d.Status.Executed.Plan = "sha256:forged" }},
		"an object is held": {made: func() *plan.Plan {
			made := planned(1)
			made.Held = &pruning.Held{}
			return made
		}(), listed: listed(applied), version: 99},
		"hooks that did not run": {made: func() *plan.Plan {
			made := planned(1)
			made.Hooks = []plan.HookObject{{}}
			return made
		}(), listed: listed(applied), version: 99},
		"hooks that ran": {made: func() *plan.Plan {
			made := planned(1)
			made.Hooks = []plan.HookObject{{}}
			return made
		}(), listed: listed(applied), version: 99, carried: true, change: func(d *v1alpha1.BundleDeployment) {
			d.Status.Hooks = &v1alpha1.HooksStatus{Digest: "sha256:artifact"}
		}},
	} {
		d := recorded(a)
		d.Spec.ServiceAccountName, d.Spec.RemoteServiceAccountName = "installer", "remote"
		d.Spec.KubeConfig, d.Spec.DeletionPolicy = d.Status.Executed.KubeConfig.DeepCopy(), v1alpha1.DeletionOrphan
		d.Spec.CRDs = &v1alpha1.CRDOptions{DeletionPolicy: v1alpha1.DeletionDelete}
		of := format.Plan
		of.Version = tc.version
		d.Status.Executed.Proof = of.Text(a.Keys.Sign(proofParts(of, d, executed, recordBytes(*d.Status.Executed))...))
		if tc.change != nil {
			tc.change(d)
		}
		c := &Consent{record: a.Proven(d)}
		c.key, c.terms = "sha256:new", "sha256:newterms"
		a.carry(Question{Object: d, Listed: tc.listed, Artifact: "sha256:artifact"}, c, tc.made)
		record := a.Proven(d)
		carried := record != nil && record.Key == "sha256:new" && record.Terms == "sha256:newterms" && IsCurrent(record.Proof) &&
			record.Plan == "sha256:plan" && record.Approval == "approval" && record.KubeConfigReach == "a.b.c" && record.Grounds == "sha256:grounds"
		if carried != tc.carried {
			t.Errorf("%s: carried %v, want %v: %+v", name, carried, tc.carried, record)
		}
	}
}
