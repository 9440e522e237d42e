// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/satchel-dev/satchel/internal/controller/step"
)

type trace struct{ ran []string }

func does(name string, outcome step.Outcome, err error) step.Step[*trace] {
	return step.Step[*trace]{Name: name, Run: func(_ context.Context, t *trace) (step.Outcome, error) {
		t.ran = append(t.ran, name)
		return outcome, err
	}}
}

func TestRun(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		reason string
		steps  []step.Step[*trace]
		ran    []string
		failed string
	}{
		"all":   {"every step runs in order", []step.Step[*trace]{does("a", step.Continue, nil), does("b", step.Continue, nil)}, []string{"a", "b"}, ""},
		"stop":  {"stopping is no failure", []step.Step[*trace]{does("a", step.Stop, nil), does("b", step.Continue, nil)}, []string{"a"}, ""},
		"error": {"a failure ends the list and names its step", []step.Step[*trace]{does("a", step.Continue, boom), does("b", step.Continue, nil)}, []string{"a"}, "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var state trace
			err := step.Run(t.Context(), tc.steps, &state, nil)
			if diff := cmp.Diff(tc.ran, state.ran); diff != "" {
				t.Errorf("%s: steps that ran (-want +got):\n%s", tc.reason, diff)
			}
			if got := step.Failed(err); got != tc.failed {
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
	err := step.Run(ctx, []step.Step[*trace]{does("a", step.Continue, nil)}, &state, nil)
	if !errors.Is(err, context.Canceled) || len(state.ran) != 0 {
		t.Errorf("err %v, ran %v; want a cancelled run without a step", err, state.ran)
	}
}

func TestMetricsCountEachStep(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := step.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	observe := metrics.Observer("BundleSource", step.Reconciling)
	observe("fetch", time.Second, nil)
	observe("fetch", time.Second, errors.New("no"))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Errorf("gathered %v (%v), want one family with a series a result", families, err)
	}
	(*step.Metrics)(nil).Observer("x", step.Removing)("y", 0, nil)
}
