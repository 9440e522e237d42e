// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// F56: a revision that was converted again may have other hooks than the applied one, where only its objects can be compared. They are
// not stored as the applied ones, nor is it stored that there are none.
func TestF56UnprovenHooksAreNotKept(t *testing.T) {
	hooks := []plan.Hook{{HookTerms: plan.HookTerms{Events: []string{"pre-delete"}}}}
	ran := &v1alpha1.HooksStatus{}
	for name, tc := range map[string]struct {
		unproven bool
		hooks    []plan.Hook
		ran      *v1alpha1.HooksStatus
		kept     bool
	}{
		"proven, no hooks":                     {kept: true},
		"proven, with hooks":                   {hooks: hooks, ran: ran, kept: true},
		"proven, the hooks are gone":           {ran: ran, kept: true},
		"unproven, no hooks":                   {unproven: true, kept: true},
		"unproven, with hooks":                 {unproven: true, hooks: hooks, ran: ran},
		"unproven, with hooks, none ran":       {unproven: true, hooks: hooks},
		"unproven, no hooks, there were hooks": {unproven: true, ran: ran},
	} {
		snapshots, err := lastapplied.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		st := Stage{Snapshots: snapshots}
		in := &Input{
			Subject: &stage.Subject{Object: &v1alpha1.BundleDeployment{}}, Rendered: &stage.Rendered{Unproven: tc.unproven},
			Decided: &stage.Decided{Plan: &plan.Plan{}},
		}
		in.Object.UID, in.Object.Status.Hooks = "uid", tc.ran
		kept, err := st.KeepSnapshot(in, snapshot.Snapshot{Revision: "v1", Hooks: tc.hooks})
		if err != nil {
			t.Fatal(err)
		}
		last, found, err := snapshot.Read(snapshots, "uid")
		if err != nil || kept != tc.kept || found != tc.kept || found && len(last.Hooks) != len(tc.hooks) {
			t.Errorf("%s: kept %v, found %v (%v), want %v: %+v", name, kept, found, err, tc.kept, last)
		}
	}
}
