// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// planned is a plan to keep, or apply, an object with a content.
func planned(content byte) *plan.Plan { return planning(content, plan.Unchanged) }

// planning is a plan to do something with an object with a content.
func planning(content byte, verb plan.Verb) *plan.Plan {
	object := plan.Object{ID: inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "a"}, Rendered: inventory.Hash{content}}
	object.Desired = &unstructured.Unstructured{Object: map[string]any{}}
	return &plan.Plan{Stages: []plan.Stage{{Actions: []plan.Action{{Object: object, Verb: verb}}}}}
}

// hooked are hooks of a revision: one, with a value.
func hooked(value string) []plan.Hook {
	return []plan.Hook{{Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hook"}, "data": map[string]any{"value": value, "number": int64(1)},
	}}}}
}

// F56: the digests of plans have another version. What was approved goes on without another approval, if nothing changed. A plan that
// waits for an approval, or was denied, is not carried, whatever differs in it.
func TestF56RecordsOfAnotherVersion(t *testing.T) {
	listed := func(e inventory.Entry) inventory.Inventory {
		e.ID = inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
		return inventory.New("target", e)
	}
	applied := inventory.Entry{Rendered: inventory.Hash{1}, Fields: inventory.Hash{1}}
	ran := func(d *v1alpha1.BundleDeployment) {
		d.Status.Hooks = &v1alpha1.HooksStatus{Digest: "sha256:artifact", Generation: 7}
	}
	type row struct {
		made    *plan.Plan
		listed  inventory.Inventory
		hooks   []plan.Hook
		change  func(*v1alpha1.BundleDeployment)
		reach   string
		version int
		// kept are the hooks of the snapshot; damaged makes it unreadable.
		kept    []plan.Hook
		damaged bool
		carried bool
	}
	kept := func(change func(*row)) row {
		made := row{made: planned(1), listed: listed(applied), version: 99, reach: "a.b.c"}
		change(&made)
		return made
	}
	for name, tc := range map[string]row{
		"nothing changed":    kept(func(r *row) { r.carried = true }),
		"drift":              kept(func(r *row) { r.made, r.carried = planning(1, plan.Repair), true }),
		"an older version":   kept(func(r *row) { r.version, r.carried = 0, true }),
		"this version":       kept(func(r *row) { r.version = format.Plan.Version }),
		"another content":    kept(func(r *row) { r.made = planned(2) }),
		"an unknown content": kept(func(r *row) { r.listed = listed(inventory.Entry{Fields: inventory.Hash{1}}) }),
		"begun": kept(func(r *row) {
			r.listed = listed(inventory.Entry{Rendered: inventory.Hash{1}, Fields: inventory.Hash{1}, Begun: true})
		}),
		"never applied":   kept(func(r *row) { r.listed = listed(inventory.Entry{Rendered: inventory.Hash{1}}) }),
		"another object":  kept(func(r *row) { r.listed = inventory.New("target") }),
		"another account": kept(func(r *row) { r.change = func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "other" } }),
		"another cluster": kept(func(r *row) {
			r.change = func(d *v1alpha1.BundleDeployment) { d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{} }
		}),
		"another server": kept(func(r *row) { r.reach = "x.b.c" }),
		"another user":   kept(func(r *row) { r.reach = "a.b.x" }),
		"another end":    kept(func(r *row) { r.change = func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = "" } }),
		"a record that is none": kept(func(r *row) {
			r.change = func(d *v1alpha1.BundleDeployment) { d.Status.Internal.Executed.Plan = "sha256:forged" }
		}),
		"an object is held":      kept(func(r *row) { r.made.Held = &pruning.Held{} }),
		"another spec":           kept(func(r *row) { r.change = func(d *v1alpha1.BundleDeployment) { d.Generation++ } }),
		"an object is adopted":   kept(func(r *row) { r.made = planning(1, plan.Adopt) }),
		"an object is recreated": kept(func(r *row) { r.made = planning(1, plan.Recreate) }),
		"hooks that did not run": kept(func(r *row) { r.hooks, r.kept = hooked("a"), hooked("a") }),
		"hooks that ran":         kept(func(r *row) { r.hooks, r.kept, r.change, r.carried = hooked("a"), hooked("a"), ran, true }),
		"hooks that ran, of another artifact": kept(func(r *row) {
			r.hooks, r.kept, r.change = hooked("a"), hooked("a"), func(d *v1alpha1.BundleDeployment) { ran(d); d.Status.Hooks.Digest = "sha256:another" }
		}),
		"hooks with another value":             kept(func(r *row) { r.hooks, r.kept, r.change = hooked("b"), hooked("a"), ran }),
		"hooks that are gone":                  kept(func(r *row) { r.kept, r.change = hooked("a"), ran }),
		"hooks, the snapshot has none":         kept(func(r *row) { r.hooks, r.change = hooked("a"), ran }),
		"hooks, the snapshot is unreadable":    kept(func(r *row) { r.hooks, r.kept, r.change, r.damaged = hooked("a"), hooked("a"), ran, true }),
		"no hooks, the snapshot is unreadable": kept(func(r *row) { r.damaged, r.carried = true, true }),
	} {
		a := signing(t)
		dir := t.TempDir()
		var err error
		if a.Snapshots, err = lastapplied.Open(dir, nil); err != nil {
			t.Fatal(err)
		}
		if err := snapshot.Save(a.Snapshots, "uid", snapshot.Snapshot{Revision: "v1", Hooks: tc.kept}); err != nil {
			t.Fatal(err)
		}
		if tc.damaged {
			if err := os.WriteFile(filepath.Join(dir, "uid.snapshot"), []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d := recorded(a)
		d.Generation = 7
		d.Spec.ServiceAccountName, d.Spec.Target.ServiceAccountName = "installer", "remote"
		d.Spec.Target.ClusterReference = effective.ClusterReference(d.Status.Internal.Executed.Cluster)
		d.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
		d.Spec.Apply.CRDs = &v1alpha1.CRDOptions{DeletionPolicy: v1alpha1.DeletionDelete}
		of := format.Plan
		of.Version = tc.version
		d.Status.Internal.Executed.Proof = of.Text(a.Keys.Sign(proofParts(of, d, executed, recordBytes(*d.Status.Internal.Executed))...))
		if tc.change != nil {
			tc.change(d)
		}
		c := &State{record: a.Proven(d)}
		c.key, c.terms = "sha256:new", "sha256:newterms"
		a.carry(Question{Object: d, Listed: tc.listed, Artifact: "sha256:artifact", Reach: tc.reach, Hooks: tc.hooks}, c, tc.made)
		record := a.Proven(d)
		carried := record != nil && record.Key == "sha256:new" && record.Terms == "sha256:newterms" && IsCurrent(record.Proof) &&
			record.Plan == "sha256:plan" && record.Approval == "approval" && record.KubeConfigReach == "a.b.c" && record.Grounds == "sha256:grounds"
		if carried != tc.carried {
			t.Errorf("%s: carried %v, want %v: %+v", name, carried, tc.carried, record)
		}
	}
}

// F56: the record says the generation of the spec that leads to its plan, also of one that was edited without another result.
func TestF56RecordsFollowTheSpec(t *testing.T) {
	a := signing(t)
	for key, want := range map[string]int64{"sha256:key": 8, "sha256:another": 7} {
		d := recorded(a)
		d.Generation = 8
		c := &State{record: a.Proven(d), PlanDigests: PlanDigests{key: key, terms: "sha256:terms"}}
		a.carry(Question{Object: d}, c, planned(1))
		if record := a.Proven(d); record == nil || record.Generation != want || c.record != record {
			t.Errorf("%s: the record is %+v, want the generation %d", key, record, want)
		}
	}
}
