// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout/forecast"
	"github.com/satchel-dev/satchel/internal/view"
)

// Plan is what a run would do. Its JSON form is what rollout plan -o json prints.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Revision is that of the run. Its name is empty where only the controller can compute it.
	Revision Revision `json:"revision"`
	// State says what the run is: the one under way, or one that would begin.
	State string `json:"state"`
	// Changes are what differs from the revision that the waves have now.
	Changes []string   `json:"changes,omitempty"`
	Waves   []PlanWave `json:"waves"`
	// Invalid are clusters for which no BundleDeployment can be rendered, and why.
	Invalid []PlanProblem `json:"invalid,omitempty"`
}

// PlanWave is what a run does with a wave.
type PlanWave struct {
	Name        string `json:"name"`
	Clusters    int    `json:"clusters"`
	Concurrency int    `json:"maxConcurrency"`
	Failures    int    `json:"maxFailures"`
	Opens       string `json:"opens"`
	// Before and After are the plans of a BundleApproval that are needed to start the wave, and to complete it.
	Before string `json:"planBefore,omitempty"`
	After  string `json:"planAfter,omitempty"`
	// First are the clusters that are started first.
	First []string `json:"first"`
}

// PlanProblem is a cluster that cannot be updated.
type PlanProblem struct {
	Cluster string `json:"cluster"`
	Message string `json:"message"`
}

// PlanWaves are the waves of a forecast. Done are the waves of the run that are complete, and withPlans tells that the digests are those
// of the run: they are not where the revision, or the number of the run, is not known yet.
func PlanWaves(all []forecast.Outlook, done map[string]bool, withPlans bool, now time.Time) []PlanWave {
	waves := make([]PlanWave, 0, len(all))
	after := "" // what the wave before has to do first
	for i := range all {
		one := &all[i]
		wave := PlanWave{Name: one.Wave, Clusters: one.Clusters, Concurrency: one.AtOnce, Failures: one.Failures, First: one.First}
		if withPlans {
			wave.Before = one.Before
			wave.After = one.After
		}
		switch {
		case done[one.Wave]:
			wave = PlanWave{Name: one.Wave, Clusters: one.Clusters, Concurrency: one.AtOnce, Failures: one.Failures, Opens: "complete"}
		case one.Clusters == 0:
			wave.Opens = "no clusters"
		default:
			wave.Opens = opens(one, after, now)
			after = "after " + view.Inline(one.Wave)
			if one.Soak > 0 {
				after += ", soak " + view.Short(one.Soak)
			}
			if one.After != "" {
				after += ", approval"
			}
		}
		if wave.First == nil {
			wave.First = []string{}
		}
		waves = append(waves, wave)
	}
	return waves
}

// opens says what a wave waits for.
func opens(one *forecast.Outlook, after string, now time.Time) string {
	var parts []string
	if after != "" {
		parts = append(parts, after)
	}
	if one.Before != "" {
		parts = append(parts, "approval")
	}
	switch {
	case one.Never:
		parts = append(parts, "no window opens")
	case one.Opens.After(now) && after == "":
		parts = append(parts, one.Opens.UTC().Format("Mon 2006-01-02 15:04 MST"))
	case one.Opens.After(now):
		parts = append(parts, "window")
	}
	if len(parts) == 0 {
		return "now"
	}
	return strings.Join(parts, ", ")
}

// Changes are the differences between two specs as they count in revisions: fields of the template by their path, and the other parts by
// their name.
func Changes(before, after *v1alpha1.BundleRolloutSpec) []string {
	var changes []string
	changes = append(changes, difference("template.spec", decoded(before.Template.Spec.Raw), decoded(after.Template.Spec.Raw))...)
	for _, part := range []struct {
		name          string
		before, after any
	}{
		{"template.metadata", before.Template.Metadata, after.Template.Metadata}, {"variables", before.Variables, after.Variables},
		{"overrides", before.Overrides, after.Overrides},
	} {
		changes = append(changes, difference(part.name, plain(part.before), plain(part.after))...)
	}
	if len(changes) > mostChanges {
		rest := len(changes) - mostChanges
		changes = append(changes[:mostChanges:mostChanges], fmt.Sprintf("and %d more", rest))
	}
	return changes
}

// mostChanges bounds the changes that are listed.
const mostChanges = 20
