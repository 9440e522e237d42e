// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

var database = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Database"}

// judged checks one object by rules.
func judged(t *testing.T, rules health.Rules, text string) health.Report {
	t.Helper()
	object := parse(t, text)
	c := &cluster{objects: map[string]*unstructured.Unstructured{object.GetName(): object}}
	gvk := object.GroupVersionKind()
	report, err := rules.Check(t.Context(), c, []plan.Object{{
		ID:   inventory.IDOf(object),
		Kind: plan.Kind{Resource: gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Expressions of users decide for their kind, in the order of Flux, and for no other.
func TestRules(t *testing.T) {
	rules, err := health.NewRules([]health.Expressions{
		{Kind: database, InProgress: "status.phase == 'Migrating'", Failed: "status.phase in ['Lost', 'Migrating']", Current: "status.phase == 'Up'"},
		{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Current: "data.state == 'done'"},
		{Kind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Heavy"}, Current: "spec.all(a, spec.all(b, spec.all(c, spec.all(d, a == b))))"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	heavy := `{apiVersion: example.org/v1, kind: Heavy, metadata: {name: x}, spec: [` + strings.Repeat("1, ", 500) + `1]}`
	for name, c := range map[string]struct {
		reason, object string
		want           health.State
		says           string
	}{
		"healthy":          {"current is true", `{apiVersion: example.org/v1, kind: Database, metadata: {name: x}, status: {phase: Up}}`, "", ""},
		"failed":           {"failed is", `{apiVersion: example.org/v1, kind: Database, metadata: {name: x}, status: {phase: Lost}}`, health.Failed, "failed is true"},
		"under way":        {"inProgress comes first", `{apiVersion: example.org/v1, kind: Database, metadata: {name: x}, status: {phase: Migrating}}`, health.InProgress, "inProgress is true"},
		"none":             {"it says nothing that is known", `{apiVersion: example.org/v1, kind: Database, metadata: {name: x}, status: {phase: Other}}`, health.InProgress, "none of its expressions"},
		"no status":        {"it may come", `{apiVersion: example.org/v1, kind: Database, metadata: {name: x}}`, health.InProgress, "no answer: no such attribute"},
		"older generation": {"the status is of another one", `{apiVersion: example.org/v1, kind: Database, metadata: {name: x, generation: 2}, status: {phase: Up, observedGeneration: 1}}`, health.InProgress, "newest generation"},
		"being deleted":    {"whatever its status says", `{apiVersion: example.org/v1, kind: Database, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Up}}`, health.Terminating, "deleted"},
		"another version":  {"it may look different", `{apiVersion: example.org/v2, kind: Database, metadata: {name: x}, status: {phase: Lost}}`, "", ""},
		"always current":   {"but for its expression", `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {state: begun}}`, health.InProgress, "none of its expressions"},
		"M22: too much":    {"it is stopped", heavy, health.Failed, "takes too much work"},
	} {
		t.Run(name, func(t *testing.T) {
			report := judged(t, rules, c.object)
			switch {
			case c.want == "" && report.Healthy():
			case len(report.Unhealthy) != 1 || report.Unhealthy[0].State != c.want || !strings.Contains(report.Message(), c.says):
				t.Errorf("%s: got %+v", c.reason, report.Unhealthy)
			}
		})
	}
}

// An invalid expression is named with its kind.
func TestRulesThatCannotBeRead(t *testing.T) {
	_, err := health.NewRules([]health.Expressions{{Kind: database, Current: "true", Failed: "status."}}, nil)
	if err == nil || !strings.Contains(err.Error(), `failed of example.org/v1 Database: the expression "status."`) {
		t.Errorf("got %v", err)
	}
}

// With Everything all objects are read, whatever their kind.
func TestEverything(t *testing.T) {
	c := &cluster{}
	configMap := plan.Object{ID: inventory.ID{Kind: "ConfigMap", Name: "x"}, Kind: plan.Kind{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}}
	unknown := plan.Object{ID: inventory.ID{Group: "example.org", Kind: "Widget", Name: "y"}}
	report, err := health.Rules{Everything: true}.Check(t.Context(), c, []plan.Object{configMap, unknown}, nil)
	if err != nil || len(report.Unhealthy) != 2 {
		t.Fatalf("got %+v, %v", report, err)
	}
	if report.Unhealthy[0].Message != "it does not exist" || report.Unhealthy[1].Message != "the cluster does not serve its kind" {
		t.Errorf("got %+v", report.Unhealthy)
	}
}
