// SPDX-License-Identifier: Apache-2.0

package figures_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/rollout/figures"
)

const shown = `
# HELP satchel_rollout_clusters How many clusters of a rollout have a state.
# TYPE satchel_rollout_clusters gauge
satchel_rollout_clusters{name="app",namespace="fleet",state="failed"} 1
satchel_rollout_clusters{name="app",namespace="fleet",state="held"} 2
satchel_rollout_clusters{name="app",namespace="fleet",state="leaving"} 3
satchel_rollout_clusters{name="app",namespace="fleet",state="pending"} 25
satchel_rollout_clusters{name="app",namespace="fleet",state="unmatched"} 4
satchel_rollout_clusters{name="app",namespace="fleet",state="unreachable"} 5
satchel_rollout_clusters{name="app",namespace="fleet",state="updated"} 12
satchel_rollout_clusters{name="app",namespace="fleet",state="updating"} 6
# HELP satchel_rollout_last_complete_timestamp_seconds When a revision of a rollout last completed all waves.
# TYPE satchel_rollout_last_complete_timestamp_seconds gauge
satchel_rollout_last_complete_timestamp_seconds{name="app",namespace="fleet"} 1.7e+09
# HELP satchel_rollout_wave How many waves of a rollout have a state.
# TYPE satchel_rollout_wave gauge
satchel_rollout_wave{name="app",namespace="fleet",state="Complete"} 2
satchel_rollout_wave{name="app",namespace="fleet",state="Open"} 0
satchel_rollout_wave{name="app",namespace="fleet",state="Pending"} 1
satchel_rollout_wave{name="app",namespace="fleet",state="Succeeded"} 1
`

// TestCensus shows the states of rollouts in the leader, and no metric with a label of a cluster.
func TestCensus(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	completed := metav1.NewTime(time.Unix(1_700_000_000, 0))
	rollout := &v1alpha1.BundleRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "app"}, Status: v1alpha1.BundleRolloutStatus{
		Conditions:      []metav1.Condition{{Type: v1alpha1.RolledOutCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSoaking}},
		CurrentRevision: &v1alpha1.RolloutRevision{Name: "1c09e4b7aa", CompletionTime: &completed},
		Clusters:        &v1alpha1.RolloutClusterCounts{Total: 58, Updated: 12, Updating: 6, Failed: 1, Unreachable: 5, Held: 2, Pending: 25, Leaving: 3, Unmatched: 4},
		Waves: []v1alpha1.RolloutWaveStatus{
			{Name: "a", State: v1alpha1.WaveComplete}, {Name: "b", State: v1alpha1.WaveComplete}, {Name: "c", State: v1alpha1.WaveSucceeded}, {Name: "d", State: v1alpha1.WavePending},
		},
	}}
	fresh := &v1alpha1.BundleRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "fresh"}}
	leads := make(chan struct{})
	census := figures.Census{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(rollout, fresh).Build(), Leads: leads}
	if count := testutil.CollectAndCount(census); count != 0 {
		t.Errorf("a process that is not the leader shows %d metrics", count)
	}
	close(leads)
	var kept []string // those of the rollout without a status count no waves
	for _, line := range strings.Split(strings.TrimPrefix(shown, "\n"), "\n") {
		kept = append(kept, line)
		if rest, isWave := strings.CutPrefix(line, `satchel_rollout_wave{name="app",`); isWave {
			at := strings.LastIndexByte(rest, ' ')
			kept = append(kept, `satchel_rollout_wave{name="fresh",`+rest[:at]+" 0")
		}
	}
	if err := testutil.CollectAndCompare(census, strings.NewReader(strings.Join(kept, "\n"))); err != nil {
		t.Error(err)
	}
}

// TestFigures counts starts, and how long decisions take. Without a registry nothing is counted.
func TestFigures(t *testing.T) {
	registry := prometheus.NewRegistry()
	counts, err := figures.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	counts.Started(3)
	counts.Started(0)
	counts.Decided(3 * time.Millisecond)
	(*figures.Figures)(nil).Started(1)
	(*figures.Figures)(nil).Decided(time.Second)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP satchel_rollout_starts_total How many starts of clusters were recorded.
# TYPE satchel_rollout_starts_total counter
satchel_rollout_starts_total 3
`), "satchel_rollout_starts_total"); err != nil {
		t.Error(err)
	}
	if count, err := testutil.GatherAndCount(registry, "satchel_rollout_decision_seconds"); err != nil || count != 1 {
		t.Errorf("%d histograms, %v", count, err)
	}
	if _, err := figures.New(registry); err == nil {
		t.Error("metrics are registered twice")
	}
}
