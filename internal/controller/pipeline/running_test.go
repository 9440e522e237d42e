// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// TestStuckReconcilesFailTheHealthCheck: only stuck reconciles do, not many short ones, and none
// that ended.
func TestStuckReconcilesFailTheHealthCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reconciles := pipeline.NewRunning()
		registry := prometheus.NewRegistry()
		if err := reconciles.Register(registry); err != nil {
			t.Fatal(err)
		}
		stuck := types.NamespacedName{Namespace: "a", Name: "stuck"}
		end := reconciles.Begin(stuck, 10*time.Minute)
		for range 9 {
			short := reconciles.Begin(types.NamespacedName{Namespace: "b", Name: "short"}, 2*time.Minute)
			time.Sleep(time.Minute)
			short()
		}
		if err := reconciles.Check(nil); err != nil {
			t.Error(err)
		}
		again := reconciles.Begin(stuck, 10*time.Minute) // of another controller
		time.Sleep(2*time.Minute + time.Second)
		if err := reconciles.Check(nil); err == nil || !strings.Contains(err.Error(), "a/stuck has run for 11m1s") {
			t.Errorf("got %v", err)
		}
		patient := reconciles.Begin(types.NamespacedName{Namespace: "c", Name: "patient"}, time.Hour) // a source with a long timeout
		families, err := registry.Gather()
		if err != nil || len(families) != 2 || families[0].GetMetric()[0].GetGauge().GetValue() != 661 || families[1].GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Errorf("%v, %v", families, err)
		}
		end()
		if err := reconciles.Check(nil); err != nil {
			t.Error(err)
		}
		time.Sleep(30 * time.Minute)
		again()
		if err := reconciles.Check(nil); err != nil {
			t.Errorf("one that may take an hour: %v", err)
		}
		patient()
		evaluation := reconciles.Begin(types.NamespacedName{Namespace: "d", Name: "evaluation"}, time.Second) // M37: an expression in a reconcile
		time.Sleep(62 * time.Second)
		if err := reconciles.Check(nil); err == nil || !strings.Contains(err.Error(), "d/evaluation") {
			t.Errorf("an evaluation that does not end: %v", err)
		}
		evaluation()
	})
	var none *pipeline.Running
	none.Begin(types.NamespacedName{}, time.Minute)()
}
