// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec"
)

func TestReturning(t *testing.T) {
	const healthy, failed, underWay = v1alpha1.OutcomeHealthy, v1alpha1.OutcomeFailed, v1alpha1.Outcome("")
	record := func(revision string, outcome v1alpha1.Outcome) v1alpha1.RevisionRecord {
		return v1alpha1.RevisionRecord{Revision: revision, Outcome: outcome}
	}
	for name, tc := range map[string]struct {
		reason      string
		history     []v1alpha1.RevisionRecord
		lastHealthy string
		want        bool
	}{
		"first":           {"nothing was there before", nil, "", false},
		"new":             {"it was never applied", []v1alpha1.RevisionRecord{record("v2@b", healthy)}, "v2@b", false},
		"applied":         {"it is what is applied", []v1alpha1.RevisionRecord{record("v1@a", healthy), record("v0@z", healthy)}, "v1@a", false},
		"edited":          {"another spec is no other revision", []v1alpha1.RevisionRecord{record("v1@a", underWay), record("v1@a", healthy)}, "v1@a", false},
		"goes back":       {"it was healthy before the newer one", []v1alpha1.RevisionRecord{record("v2@b", healthy), record("v1@a", healthy)}, "v2@b", true},
		"went back":       {"it is still the earlier one", []v1alpha1.RevisionRecord{record("v1@a", healthy), record("v2@b", healthy), record("v1@a", healthy)}, "v1@a", true},
		"another name":    {"the content decides", []v1alpha1.RevisionRecord{record("v2@b", healthy), record("main@a", healthy)}, "v2@b", true},
		"was not healthy": {"what never worked is no way back", []v1alpha1.RevisionRecord{record("v2@b", healthy), record("v1@a", failed)}, "v2@b", false},
		"remediation":     {"the history may be short", []v1alpha1.RevisionRecord{record("v2@b", failed)}, "v1@a", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.BundleDeployment{Status: v1alpha1.BundleDeploymentStatus{History: tc.history, Healthy: v1alpha1.HealthyRevision{Revision: tc.lastHealthy}}}
			if got := spec.Returning(d, "v1@a"); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
