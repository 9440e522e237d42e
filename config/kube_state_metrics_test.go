// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/fluxcd/pkg/apis/meta"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// stateMetrics is the part of the configuration of kube-state-metrics that is used here; see its documentation of
// CustomResourceStateMetrics.
type stateMetrics struct {
	Kind string
	Spec struct {
		Resources []struct {
			GroupVersionKind struct{ Group, Version, Kind string }
			MetricNamePrefix string
			Metrics          []struct {
				Name, Help string
				Each       struct {
					Type string
					Info struct{ LabelsFromPath map[string][]string }
				}
				LabelsFromPath map[string][]string
			}
		}
	}
}

func readStateMetrics(t *testing.T) stateMetrics {
	t.Helper()
	text, err := os.ReadFile("monitoring/kube-state-metrics/custom-resource-state.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var found stateMetrics
	if err := yaml.UnmarshalStrict(text, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// labelsOf are the labels of each kind, by name, with their paths.
func labelsOf(t *testing.T) map[string]map[string][]string {
	t.Helper()
	kinds := map[string]map[string][]string{}
	for _, resource := range readStateMetrics(t).Spec.Resources {
		labels := map[string][]string{}
		for _, metric := range resource.Metrics {
			if resource.MetricNamePrefix+"_"+metric.Name != "satchel_resource_info" || metric.Each.Type != "Info" {
				t.Errorf("%s: the metric is %s_%s of the type %s", resource.GroupVersionKind.Kind, resource.MetricNamePrefix, metric.Name, metric.Each.Type)
			}
			for _, from := range []map[string][]string{metric.LabelsFromPath, metric.Each.Info.LabelsFromPath} {
				for label, path := range from {
					labels[label] = path
				}
			}
		}
		kinds[resource.GroupVersionKind.Kind] = labels
	}
	return kinds
}

// schemaAt is the schema of a path of a CRD; nil if the CRD has no such field. "[type=Ready]" chooses one element of a list.
func schemaAt(at *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
	for _, step := range path {
		if strings.HasPrefix(step, "[") {
			if at.Items == nil || at.Items.Schema == nil {
				return nil
			}
			at = at.Items.Schema
			continue
		}
		next, found := at.Properties[step]
		if !found {
			return nil
		}
		at = &next
	}
	return at
}

// TestKubeStateMetricsPaths wants each label to come from a field of the CRD, and from a condition that exists.
func TestKubeStateMetricsPaths(t *testing.T) {
	conditions := []string{meta.ReadyCondition, meta.StalledCondition, v1alpha1.ApprovalPendingCondition, v1alpha1.RemovalBlockedCondition, v1alpha1.RolledOutCondition}
	chosen := regexp.MustCompile(`^\[type=(\w+)\]$`)
	kinds := labelsOf(t)
	for kind, labels := range kinds {
		folder := "crd/bases"
		if kind == v1alpha1.BundleRolloutKind { // it is optional
			folder = "rollouts/crd"
		}
		text, err := os.ReadFile(filepath.Join(folder, v1alpha1.GroupVersion.Group+"_"+strings.ToLower(kind)+"s.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		for label, path := range labels {
			for _, step := range path {
				if match := chosen.FindStringSubmatch(step); match != nil && !slices.Contains(conditions, match[1]) {
					t.Errorf("%s: the label %s is of the condition %s, which does not exist", kind, label, match[1])
				}
			}
			if path[0] != "metadata" && schemaAt(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, path) == nil {
				t.Errorf("%s: the label %s comes from %v, which the CRD does not have", kind, label, path)
			}
		}
	}
	if len(kinds) != 4 {
		t.Errorf("there are metrics of %d kinds, want 4", len(kinds))
	}
}

// TestKubeStateMetricsAlerts wants each alert to use labels that the metric has, and to name the object.
func TestKubeStateMetricsAlerts(t *testing.T) {
	known := []string{"__name__", "customresource_kind"}
	for _, labels := range labelsOf(t) {
		for label := range labels {
			known = append(known, label)
		}
	}
	used := regexp.MustCompile(`\$labels\.(\w+)`)
	alerts := 0
	for _, o := range render(t, "monitoring/kube-state-metrics") {
		if o.GetKind() != "PrometheusRule" {
			continue
		}
		for _, group := range o.Object["spec"].(map[string]any)["groups"].([]any) {
			for _, rule := range group.(map[string]any)["rules"].([]any) {
				alert := rule.(map[string]any)
				alerts++
				parsed, err := metricsql.Parse(alert["expr"].(string))
				if err != nil {
					t.Fatalf("%v: %v", alert["alert"], err)
				}
				metricsql.VisitAll(parsed, func(e metricsql.Expr) {
					if m, ok := e.(*metricsql.MetricExpr); ok {
						for _, filter := range m.LabelFilterss[0] {
							if !slices.Contains(known, filter.Label) {
								t.Errorf("%v: the metric has no label %s", alert["alert"], filter.Label)
							}
						}
					}
				})
				notes := alert["annotations"].(map[string]any)
				summary := notes["summary"].(string)
				if !strings.Contains(summary, "{{ $labels.exported_namespace }}/{{ $labels.name }}") {
					t.Errorf("%v does not name the object: %s", alert["alert"], summary)
				}
				for _, match := range used.FindAllStringSubmatch(summary+notes["description"].(string), -1) {
					if !slices.Contains(known, match[1]) {
						t.Errorf("%v: the metric has no label %s", alert["alert"], match[1])
					}
				}
			}
		}
	}
	if alerts < 5 {
		t.Errorf("%d alerts", alerts)
	}
}
