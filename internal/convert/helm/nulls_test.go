// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/satchel-dev/satchel/internal/convert/helm"
)

// nested is a chart harbour with the subchart lamp, which contains bulb; each shows its values.
func nested(parent, lamp, dependencies string) fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	show := func(name string) *fstest.MapFile {
		return file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {shown: {{ omit .Values \"global\" \"bulb\" | toJson | quote }}}\n")
	}
	return fstest.MapFS{
		"Chart.yaml": file("apiVersion: v2\nname: harbour\nversion: 0.1.0\n" + dependencies), "values.yaml": file(parent), "templates/a.yaml": show("harbour"),
		"charts/lamp/Chart.yaml": file("apiVersion: v2\nname: lamp\nversion: 0.1.0\n"), "charts/lamp/values.yaml": file("guard: {user: 999}\nkeep: 1\nlimits: {cpu: 200m, memory: 64Mi}\n" + lamp),
		"charts/lamp/templates/a.yaml":       show(`{{ .Chart.Name }}`),
		"charts/lamp/charts/bulb/Chart.yaml": file("apiVersion: v2\nname: bulb\nversion: 0.1.0\n"), "charts/lamp/charts/bulb/values.yaml": file("watts: 5\ncolour: {red: 1, blue: 2}\n"),
		"charts/lamp/charts/bulb/templates/a.yaml": show("bulb"),
	}
}

// TestNullsForSubcharts: a null in the values of a chart removes a default of a subchart, on any level, whether the user
// gives values of it or not (flux-f20).
func TestNullsForSubcharts(t *testing.T) {
	const alias = "dependencies: [{name: lamp, version: 0.1.0, alias: light}]\n"
	cases := map[string]struct {
		reason                     string
		parent, lamp, dependencies string
		given                      map[string]any
		want                       []string
	}{
		"defaults":               {"nothing is removed", "{}", "", "", nil, []string{`{"guard":{"user":999},"keep":1,"limits":{"cpu":"200m","memory":"64Mi"}}`, `{"colour":{"blue":2,"red":1},"watts":5}`}},
		"nulls":                  {"Helm 4.2 ignores them", "lamp: {guard: null, limits: {cpu: null}}", "", "", nil, []string{`{"keep":1,"limits":{"memory":"64Mi"}}`}},
		"with values of it":      {"Helm 4.2 takes them then", "lamp: {guard: null, limits: {cpu: null}}", "", "", map[string]any{"lamp": map[string]any{"keep": 2}}, []string{`{"keep":2,"limits":{"memory":"64Mi"}}`}},
		"with values of another": {"", "lamp: {guard: null}\nother: 1", "", "", map[string]any{"other": 2}, []string{`{"keep":1,"limits":{"cpu":"200m","memory":"64Mi"}}`}},
		"the user's nulls":       {"", "{}", "", "", map[string]any{"lamp": map[string]any{"keep": nil, "limits": map[string]any{"cpu": nil}}}, []string{`{"guard":{"user":999},"limits":{"memory":"64Mi"}}`}},
		"of the whole subchart":  {"null is no value of it", "lamp: null", "", "", nil, []string{`{"guard":{"user":999},"keep":1,"limits":{"cpu":"200m","memory":"64Mi"}}`}},
		"two levels":             {"", "lamp: {bulb: {watts: null, colour: {red: null}}}", "", "", nil, []string{`{"colour":{"blue":2}}`}},
		"of the subchart":        {"its own values", "{}", "bulb: {watts: null}", "", nil, []string{`{"colour":{"blue":2,"red":1}}`}},
		"alias":                  {"", "light: {guard: null}", "", alias, nil, []string{`{"keep":1,"limits":{"cpu":"200m","memory":"64Mi"}}`}},
		"alias and its name":     {"values under the name count for nothing", "lamp: {guard: null}", "", alias, nil, []string{`{"guard":{"user":999},"keep":1,"limits":{"cpu":"200m","memory":"64Mi"}}`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			shown := shownValues(t, nested(tc.parent, tc.lamp, tc.dependencies), tc.given)
			for _, want := range tc.want {
				if !strings.Contains(shown, "\n"+want+"\n") {
					t.Errorf("no chart has the values %s (%s):%s", want, tc.reason, shown)
				}
			}
		})
	}
}

// TestNullOfACondition: a condition that a null removes does not switch a subchart off.
func TestNullOfACondition(t *testing.T) {
	const condition = "dependencies: [{name: lamp, version: 0.1.0, condition: lamp.enabled}]\n"
	if shown := shownValues(t, nested("lamp: {enabled: null}", "enabled: false\n", condition), nil); !strings.Contains(shown, "watts") {
		t.Errorf("the subchart is off:%s", shown)
	}
	if shown := shownValues(t, nested("{}", "enabled: false\n", condition), nil); strings.Contains(shown, "watts") {
		t.Errorf("the subchart is on:%s", shown)
	}
}

// shownValues are the values that each chart shows in its ConfigMap, a line each.
func shownValues(t *testing.T, files fstest.MapFS, given map[string]any) string {
	t.Helper()
	made, problems := helm.Convert(files, "", "ns", helm.Options{ReleaseName: "demo", Values: given}, noLimits)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	shown := "\n"
	for _, m := range made.Manifests {
		data, _ := m.Object.Object["data"].(map[string]any)
		text, _ := data["shown"].(string)
		shown += text + "\n"
	}
	return shown
}

// TestHelmDropsNullsForSubcharts fails once Helm takes nulls of a chart for its subcharts again: then withSubchartTables in
// values.go can be deleted (https://github.com/helm/helm/issues/32132).
func TestHelmDropsNullsForSubcharts(t *testing.T) {
	parent := &chart.Chart{Metadata: &chart.Metadata{Name: "harbour"}, Values: map[string]any{"lamp": map[string]any{"guard": nil}}}
	parent.AddDependency(&chart.Chart{Metadata: &chart.Metadata{Name: "lamp"}, Values: map[string]any{"guard": "default"}})
	all, err := util.CoalesceValues(parent, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	if lamp, _ := all["lamp"].(map[string]any); lamp["guard"] != "default" {
		t.Errorf("Helm has repaired this: guard is %v; delete withSubchartTables", lamp["guard"])
	}
}
