// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/view"
)

// Wave is how far a wave is.
type Wave struct {
	Name        string                    `json:"name"`
	State       v1alpha1.RolloutWaveState `json:"state"`
	Total       int32                     `json:"total"`
	Updated     int32                     `json:"updated"`
	Updating    int32                     `json:"updating"`
	Failed      int32                     `json:"failed"`
	Unreachable int32                     `json:"unreachable"`
	// Detail says in words what is true of it beside the counts.
	Detail   string                           `json:"detail,omitempty"`
	Plan     string                           `json:"plan,omitempty"`
	Approval string                           `json:"approval,omitempty"`
	WaitsFor string                           `json:"waitsFor,omitempty"`
	Until    *metav1.Time                     `json:"until,omitempty"`
	Problems []v1alpha1.RolloutClusterProblem `json:"problems,omitempty"`
}

func waveOf(o *v1alpha1.BundleRollout, strategy *rollout.Strategy, status *v1alpha1.RolloutWaveStatus, now time.Time) Wave {
	w := Wave{
		Name: status.Name, State: status.State, Total: status.Total, Updated: status.Updated, Updating: status.Updating, Failed: status.Failed,
		Unreachable: status.Unreachable, Plan: status.Plan, Approval: status.Approval, WaitsFor: status.WaitsFor, Until: status.EndTime,
	}
	for _, problem := range o.Status.Worst {
		if problem.Wave == status.Name {
			w.Problems = append(w.Problems, problem)
		}
	}
	parts := w.counts(strategy)
	switch status.State {
	case v1alpha1.WavePending:
		parts = append(parts, gatesText(wave(&o.Spec.Strategy, status.Name))...)
	case v1alpha1.WaveComplete:
		parts = append(parts, completeText(status, wave(&o.Spec.Strategy, status.Name))...)
	default:
		parts = append(parts, waitText(status, now)...)
	}
	if status.Approval != "" {
		parts = append(parts, "approved by "+view.Inline(status.Approval))
	}
	if status.EndApproval != "" {
		parts = append(parts, "its end by "+view.Inline(status.EndApproval))
	}
	w.Detail = strings.Join(parts, ", ")
	return w
}

// wave is the wave of the spec with a name; nil for those that the rollout adds itself.
func wave(strategy *v1alpha1.RolloutStrategy, name string) *v1alpha1.RolloutWave {
	for i := range strategy.Waves {
		if strategy.Waves[i].Name == name {
			return &strategy.Waves[i]
		}
	}
	return nil
}

// counts are those that are not zero.
func (w *Wave) counts(strategy *rollout.Strategy) []string {
	var parts []string
	if w.Updating > 0 {
		parts = append(parts, fmt.Sprintf("%d updating", w.Updating))
	}
	if w.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed%s", w.Failed, tolerated(strategy, w)))
	}
	if w.Unreachable > 0 {
		parts = append(parts, fmt.Sprintf("%d unreachable", w.Unreachable))
	}
	return parts
}

// tolerated says how many failures do not stop the rollout.
func tolerated(strategy *rollout.Strategy, w *Wave) string {
	if strategy == nil {
		return ""
	}
	for i := range strategy.Waves {
		if strategy.Waves[i].Name == w.Name {
			return fmt.Sprintf(" (%d tolerated)", strategy.Waves[i].MaxFailures(int(w.Total-w.Unreachable)))
		}
	}
	return ""
}

// gatesText is what a wave that has not begun will wait for, beside the waves before it.
func gatesText(spec *v1alpha1.RolloutWave) []string {
	if spec == nil {
		return nil
	}
	var parts []string
	if spec.Approval == v1alpha1.WaveApprovalBefore || spec.Approval == v1alpha1.WaveApprovalBoth {
		parts = append(parts, "needs an approval")
	}
	for i := range spec.Windows {
		parts = append(parts, "window "+view.Inline(spec.Windows[i].Name))
	}
	return parts
}

// completeText says how a wave went.
func completeText(status *v1alpha1.RolloutWaveStatus, spec *v1alpha1.RolloutWave) []string {
	var parts []string
	if status.StartTime != nil && status.SuccessTime != nil {
		parts = append(parts, "took "+view.Age(status.SuccessTime.Time, *status.StartTime))
	}
	if spec != nil && spec.Soak.Duration > 0 && status.CompletionTime != nil {
		parts = append(parts, "soaked "+view.Short(spec.Soak.Duration))
	}
	return parts
}

// waitText is what the open wave waits for.
func waitText(status *v1alpha1.RolloutWaveStatus, now time.Time) []string {
	switch status.WaitsFor {
	case v1alpha1.ReasonSoaking:
		if status.EndTime == nil || !status.EndTime.After(now) {
			return []string{"checked once more"}
		}
		return []string{"soaks for another " + view.Age(status.EndTime.Time, metav1.NewTime(now))}
	case v1alpha1.ReasonApprovalPending:
		return []string{"needs an approval of " + view.ShortRevision(view.Inline(status.Plan))}
	case v1alpha1.ReasonOutsideWindow:
		if status.EndTime == nil {
			return []string{"no window opens"}
		}
		return []string{"opens " + status.EndTime.UTC().Format("Mon 2006-01-02 15:04 MST")}
	case v1alpha1.ReasonHeld:
		return []string{"clusters wait for a user"}
	case v1alpha1.ReasonNoClusterReachable:
		return []string{"no cluster can be reached"}
	case v1alpha1.ReasonMaxUnavailableReached:
		return []string{"too many clusters are not ready"}
	}
	return nil
}
