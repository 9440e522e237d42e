// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// metricsFile lists the metrics that dashboard and alerts use. tests/e2e wants the running controllers to serve them.
const metricsFile = "testdata/metrics.txt"

// expressions are those of the alerts and of the dashboard, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	objects := render(t, "monitoring")
	for _, o := range objects {
		if o.GetKind() != "PrometheusRule" {
			continue
		}
		for _, group := range o.Object["spec"].(map[string]any)["groups"].([]any) {
			for _, rule := range group.(map[string]any)["rules"].([]any) {
				alert := rule.(map[string]any)
				found["alert "+alert["alert"].(string)] = alert["expr"].(string)
			}
		}
	}
	for _, panel := range dashboard(t, decode[corev1.ConfigMap](t, objects, "ConfigMap")).Panels {
		for _, target := range panel.Targets {
			found["panel "+panel.Title+" "+target.RefID] = target.Expr
		}
	}
	return found
}

type board struct {
	Panels []panel
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ RefID, Expr string }
}

func dashboard(t *testing.T, maps []corev1.ConfigMap) board {
	t.Helper()
	var found board
	if len(maps) != 1 {
		t.Fatalf("%d ConfigMaps, want the dashboard", len(maps))
	}
	if err := json.Unmarshal([]byte(maps[0].Data["satchel.json"]), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// namesIn parses an expression and gives the metrics it is about.
func namesIn(t *testing.T, where, expression string) []string {
	t.Helper()
	parsed, err := metricsql.Parse(strings.NewReplacer("$__rate_interval", "5m", "$namespace", "satchel-system").Replace(expression))
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	var names []string
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		if m, ok := e.(*metricsql.MetricExpr); ok {
			for _, filters := range m.LabelFilterss {
				names = append(names, filters[0].Value)
			}
		}
	})
	return names
}

// TestMetricsOfMonitoring wants each expression to be valid and its metrics to be documented, which the pages are tested
// for; those of the libraries are only listed.
func TestMetricsOfMonitoring(t *testing.T) {
	used := map[string]bool{}
	for where, expression := range expressions(t) {
		for _, name := range namesIn(t, where, expression) {
			used[regexp.MustCompile("_(bucket|count|sum)$").ReplaceAllString(name, "")] = true
		}
	}
	pages := ""
	for _, page := range []string{"deployment-controller.md", "source-controller.md", "rollout-controller.md"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		pages += string(text)
	}
	if delete(used, "satchel_resource_info"); len(used) == 0 { // it is of kube-state-metrics
		t.Error("no metric of a controller is used")
	}
	for name := range used {
		if own := strings.HasPrefix(name, "satchel_") || strings.HasPrefix(name, "gotk_"); own && !strings.Contains(pages, "\n| `"+name+"` |") {
			t.Errorf("%s is used, and no controller has it", name)
		}
	}
	got := strings.Join(slices.Sorted(maps.Keys(used)), "\n") + "\n"
	if *update {
		if err := os.WriteFile(metricsFile, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the metrics that are used changed (-golden +used); run the test with -update:\n%s", diff)
	}
}

// TestAlertsTellWhatToDo wants each alert to say how bad it is, what happened and what to do.
func TestAlertsTellWhatToDo(t *testing.T) {
	alerts := 0
	for _, o := range render(t, "monitoring") {
		if o.GetKind() != "PrometheusRule" {
			continue
		}
		for _, group := range o.Object["spec"].(map[string]any)["groups"].([]any) {
			for _, rule := range group.(map[string]any)["rules"].([]any) {
				alert := rule.(map[string]any)
				alerts++
				severity := alert["labels"].(map[string]any)["severity"]
				notes := alert["annotations"].(map[string]any)
				if !slices.Contains([]any{"critical", "warning", "info"}, severity) || notes["summary"] == nil || notes["description"] == nil {
					t.Errorf("%v lacks a severity, a summary or a description", alert["alert"])
				}
			}
		}
	}
	if alerts < 10 {
		t.Errorf("%d alerts", alerts)
	}
}

// TestDashboardIsReadable wants panels that explain themselves and do not lie on one another.
func TestDashboardIsReadable(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range dashboard(t, decode[corev1.ConfigMap](t, render(t, "monitoring"), "ConfigMap")).Panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the id of another one", p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %q explains or shows nothing", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q lie on one another", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
