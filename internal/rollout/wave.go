// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/rollout/windows"
)

// Defaults of the strategy, which are those of the CRD.
const (
	defaultMinReady         = 30 * time.Second
	defaultUnreachableAfter = 5 * time.Minute
)

// Excluded is the wave of clusters that no wave selects, where the strategy excludes these.
const Excluded = -1

// Strategy is the strategy of a rollout, checked, with all defaults.
type Strategy struct {
	// Waves in their order, with the wave for clusters that no other selects, if there is one.
	Waves []Wave

	minReady         time.Duration
	progressDeadline time.Duration
	unreachableAfter time.Duration
	unreachable      v1alpha1.UnreachablePolicy
	onFailure        v1alpha1.RolloutFailureAction
}

// Wave is a wave of a strategy, checked, with all defaults.
type Wave struct {
	Name    string
	OrderBy string

	selector       labels.Selector
	maxConcurrency amount
	maxUnavailable amount
	maxFailures    amount
	approval       v1alpha1.WaveApproval
	soak           time.Duration
	windows        windows.List
}

// ReadStrategy checks a strategy. The error names every field that is wrong.
func ReadStrategy(spec *v1alpha1.RolloutStrategy) (*Strategy, error) {
	read := &Strategy{
		minReady:         duration(spec.MinReady, defaultMinReady),
		progressDeadline: duration(spec.ProgressDeadline, revision.DefaultProgressDeadline),
		unreachableAfter: duration(spec.Unreachable.After, defaultUnreachableAfter),
		unreachable:      cmp.Or(spec.Unreachable.Policy, v1alpha1.UnreachableSkip),
		onFailure:        cmp.Or(spec.OnFailure, v1alpha1.RolloutPause),
	}
	var problems []error
	for i := range spec.Waves {
		wave, err := readWave(fmt.Sprintf("spec.strategy.waves[%d]", i), &spec.Waves[i])
		problems = append(problems, err)
		read.Waves = append(read.Waves, wave)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	read.addLastWave(spec.UnmatchedClusters)
	return read, nil
}

// addLastWave adds the wave of the clusters that no other selects. There is none where a wave selects all.
func (s *Strategy) addLastWave(unmatched v1alpha1.UnmatchedClusters) {
	last := Wave{
		Name: v1alpha1.WaveUnmatched, selector: labels.Everything(), approval: v1alpha1.WaveApprovalNone,
		maxConcurrency: defaultMaxConcurrency, maxUnavailable: defaultMaxUnavailable, maxFailures: defaultMaxFailures,
	}
	switch {
	case len(s.Waves) == 0:
		last.Name = v1alpha1.WaveAll
	case s.Waves[len(s.Waves)-1].selector.Empty(), unmatched == v1alpha1.UnmatchedExclude:
		return
	}
	s.Waves = append(s.Waves, last)
}

func readWave(field string, spec *v1alpha1.RolloutWave) (Wave, error) {
	read := Wave{
		Name: spec.Name, OrderBy: spec.OrderBy, soak: spec.Soak.Duration,
		approval: cmp.Or(spec.Approval, v1alpha1.WaveApprovalNone),
	}
	problems := make([]error, 5)
	read.selector, problems[0] = metav1.LabelSelectorAsSelector(&spec.Selector)
	if problems[0] != nil {
		problems[0] = fmt.Errorf("%s.selector: %w", field, problems[0])
	}
	read.maxConcurrency, problems[1] = readAmount(field+".maxConcurrency", spec.MaxConcurrency, defaultMaxConcurrency, 1)
	read.maxUnavailable, problems[2] = readAmount(field+".maxUnavailable", spec.MaxUnavailable, defaultMaxUnavailable, 1)
	read.maxFailures, problems[3] = readAmount(field+".maxFailures", spec.MaxFailures, defaultMaxFailures, 0)
	read.windows, problems[4] = windows.Read(field+".windows", spec.Windows)
	return read, errors.Join(problems...)
}

// WaveOf is the index of the first wave that selects a cluster with these labels, or Excluded.
func (s *Strategy) WaveOf(clusterLabels map[string]string) int {
	set := labels.Set(clusterLabels)
	for i := range s.Waves {
		if s.Waves[i].selector.Matches(set) {
			return i
		}
	}
	return Excluded
}

// ApprovalOf is the name of the approval by which clusters of a wave were started; empty where it needs none, or had none.
func (s *Strategy) ApprovalOf(wave int, status *v1alpha1.BundleRolloutStatus) string {
	if wave < 0 || !s.Waves[wave].needsApprovalBefore() {
		return ""
	}
	for i := range status.Waves {
		if status.Waves[i].Name == s.Waves[wave].Name {
			return status.Waves[i].Approval
		}
	}
	return ""
}

// MaxConcurrency is how many of so many clusters are updated at once.
func (w *Wave) MaxConcurrency(clusters int) int { return w.maxConcurrency.roundedUp(clusters) }

// MaxFailures is how many of so many clusters that can be reached may fail.
func (w *Wave) MaxFailures(reachable int) int { return w.maxFailures.roundedDown(reachable, 0) }

// Soak is how long the wave soaks.
func (w *Wave) Soak() time.Duration { return w.soak }

// NeedsApprovalBefore tells whether clusters of the wave are started with an approval only.
func (w *Wave) NeedsApprovalBefore() bool { return w.needsApprovalBefore() }

// NeedsApprovalAfter tells whether the wave is completed with an approval only.
func (w *Wave) NeedsApprovalAfter() bool { return w.needsApprovalAfter() }

// WithoutGates is the strategy without approvals and windows.
func (s *Strategy) WithoutGates() *Strategy {
	free := *s
	free.Waves = slices.Clone(s.Waves)
	for i := range free.Waves {
		free.Waves[i].approval = v1alpha1.WaveApprovalNone
		free.Waves[i].windows = nil
	}
	return &free
}

// needsApprovalBefore tells whether clusters of the wave are started with an approval only.
func (w *Wave) needsApprovalBefore() bool {
	return w.approval == v1alpha1.WaveApprovalBefore || w.approval == v1alpha1.WaveApprovalBoth
}

// needsApprovalAfter tells whether the wave is completed with an approval only.
func (w *Wave) needsApprovalAfter() bool {
	return w.approval == v1alpha1.WaveApprovalAfter || w.approval == v1alpha1.WaveApprovalBoth
}

// duration is the value of a field, or what is used where it is left out.
func duration(value v1alpha1.Duration, otherwise time.Duration) time.Duration {
	if value.Duration == 0 {
		return otherwise
	}
	return value.Duration
}
