// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

type trace struct{ ran []string }

func does(name string, outcome pipeline.Outcome, err error) pipeline.Step[*trace] {
	return pipeline.Step[*trace]{Name: name, Run: func(_ context.Context, t *trace) (pipeline.Outcome, error) {
		t.ran = append(t.ran, name)
		return outcome, err
	}}
}

func TestRun(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		reason string
		steps  []pipeline.Step[*trace]
		ran    []string
		failed string
	}{
		"all":   {"every step runs in order", []pipeline.Step[*trace]{does("a", pipeline.Continue, nil), does("b", pipeline.Continue, nil)}, []string{"a", "b"}, ""},
		"stop":  {"stopping is no failure", []pipeline.Step[*trace]{does("a", pipeline.Stop, nil), does("b", pipeline.Continue, nil)}, []string{"a"}, ""},
		"error": {"a failure ends the list and names its step", []pipeline.Step[*trace]{does("a", pipeline.Continue, boom), does("b", pipeline.Continue, nil)}, []string{"a"}, "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var state trace
			err := pipeline.Run(t.Context(), tc.steps, &state, nil)
			if diff := cmp.Diff(tc.ran, state.ran); diff != "" {
				t.Errorf("%s: steps that ran (-want +got):\n%s", tc.reason, diff)
			}
			if got := pipeline.FailedStep(err); got != tc.failed {
				t.Errorf("%s: failed step %q, want %q", tc.reason, got, tc.failed)
			}
			if tc.failed != "" && !errors.Is(err, boom) {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var state trace
	err := pipeline.Run(ctx, []pipeline.Step[*trace]{does("a", pipeline.Continue, nil)}, &state, nil)
	if !errors.Is(err, context.Canceled) || len(state.ran) != 0 {
		t.Errorf("err %v, ran %v; want a cancelled run without a step", err, state.ran)
	}
}

func TestMetricsCountEachStep(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := pipeline.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	observe := metrics.Observer("BundleSource", pipeline.PhaseReconciling)
	observe("fetch", time.Second, nil)
	observe("fetch", time.Second, errors.New("no"))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Errorf("gathered %v (%v), want one family with a series a result", families, err)
	}
	(*pipeline.Metrics)(nil).Observer("x", pipeline.PhaseRemoving)("y", 0, nil)
}
