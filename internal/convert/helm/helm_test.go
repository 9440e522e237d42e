// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// chartOf copies a chart of testdata into memory.
func chartOf(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	root := os.DirFS(filepath.Join("testdata", "charts", name))
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, file)
		files[file] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// inlineChart is a chart of one template.
func inlineChart(pairs ...string) fstest.MapFS {
	files := fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: app\nversion: 1.0.0\n")}}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return files
}

// asHelm is what "helm template" gives: the CRDs and objects, and the hooks by their events.
type asHelm struct {
	Objects []string
	Hooks   []string
}

// template renders a chart on a disk with Helm's own loader, engine and sorting, as its template command does.
func template(dir string, given map[string]any, name string) (crds []chart.CRD, hooks []*release.Hook, manifests []releaseutil.Manifest, err error) {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := chartutil.ProcessDependencies(c, given); err != nil {
		return nil, nil, nil, err
	}
	version, err := common.ParseKubeVersion(helm.DefaultKubeVersion)
	if err != nil {
		return nil, nil, nil, err
	}
	cluster := common.DefaultCapabilities.Copy()
	cluster.KubeVersion, cluster.APIVersions = *version, helm.DefaultAPIVersions()
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: name, Namespace: "ns", Revision: 1, IsInstall: true}, cluster)
	if err != nil {
		return nil, nil, nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, nil, nil, err
	}
	maps.DeleteFunc(rendered, func(name, _ string) bool { return path.Base(name) == "NOTES.txt" })
	hooks, manifests, err = releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	return c.CRDObjects(), hooks, manifests, err
}

// library is what Helm's library makes of a chart.
func library(t testing.TB, dir string, given map[string]any, name string) (asHelm, error) {
	t.Helper()
	crds, hooks, manifests, err := template(dir, given, name)
	if err != nil {
		return asHelm{}, err
	}
	var made asHelm
	for _, crd := range crds {
		made.Objects = append(made.Objects, objectsOf(t, string(crd.File.Data))...)
	}
	for _, m := range manifests {
		made.Objects = append(made.Objects, objectsOf(t, m.Content)...)
	}
	for _, h := range hooks {
		made.Hooks = append(made.Hooks, hookLines(t, h)...)
	}
	slices.Sort(made.Objects)
	made.Objects = slices.Compact(made.Objects) // Helm installs a definition once
	slices.Sort(made.Hooks)
	return made, nil
}

// objectsOf decodes documents, lists flattened as kubectl does.
func objectsOf(t testing.TB, text string) []string {
	t.Helper()
	var all []string
	for _, document := range strings.Split(text, "\n---") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		items, isList := object["items"].([]any)
		switch {
		case object == nil:
		case isList:
			for _, item := range items {
				all = append(all, canonical(t, item))
			}
		default:
			all = append(all, canonical(t, object))
		}
	}
	return all
}

func canonical(t testing.TB, object any) string {
	t.Helper()
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func hookLines(t testing.TB, h *release.Hook) []string {
	t.Helper()
	var all []string
	for _, event := range h.Events {
		switch event {
		case release.HookTest, release.HookPreRollback, release.HookPostRollback:
		default:
			policies := h.DeletePolicies
			if len(policies) == 0 {
				policies = []release.HookDeletePolicy{release.HookBeforeHookCreation}
			}
			all = append(all, fmt.Sprintf("%s %d %v\n%s", event, h.Weight, policies, strings.Join(objectsOf(t, h.Manifest), "")))
		}
	}
	return all
}

// ours is the same of this package.
func ours(t testing.TB, r helm.Result) asHelm {
	t.Helper()
	var made asHelm
	for _, m := range r.Manifests {
		made.Objects = append(made.Objects, canonical(t, m.Object.Object))
	}
	for _, h := range r.Hooks {
		for _, event := range h.Events {
			made.Hooks = append(made.Hooks, fmt.Sprintf("%s %d %v\n%s", event, h.Weight, h.DeletePolicies, canonical(t, h.Object.Object)))
		}
	}
	slices.Sort(made.Objects)
	slices.Sort(made.Hooks)
	return made
}

// fixed are the values without which the charts of testdata make some up.
var fixed = map[string]any{"password": "hunter22"}

// with adds values to the fixed ones.
func with(pairs ...any) map[string]any {
	all := maps.Clone(fixed)
	for i := 0; i < len(pairs); i += 2 {
		all[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return all
}

// variants are charts with values that switch their parts on and off.
var variants = map[string]struct {
	chart  string
	values map[string]any
}{
	"shop":                   {"shop", fixed},
	"shop, both aliases":     {"shop", with("archive", map[string]any{"enabled": true})},
	"shop, no alias":         {"shop", with("orders", map[string]any{"enabled": false}, "ordersStore", map[string]any{"host": "x"})},
	"shop, tag":              {"shop", with("tags", map[string]any{"mail": true})},
	"shop, values taken off": {"shop", with("service", map[string]any{"port": 81.0, "type": "NodePort"}, "flags", nil, "global", map[string]any{"domain": "other.example"})},
	"shop, resources":        {"shop", with("resources", map[string]any{"limits": map[string]any{"cpu": 2.0, "memory": "1Gi"}}, "config", map[string]any{"theme": `{{ define "x" }}[{{ . }}]{{ end }}{{ include "x" .Values.replicas }}{{ include "shop.name" . }}`})},
	"hooks":                  {"hooks", nil},
}

// TestAsHelm: a chart becomes object for object, and hook for hook, what Helm's library makes of it.
func TestAsHelm(t *testing.T) {
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			want, err := library(t, filepath.Join("testdata", "charts", v.chart), v.values, "demo")
			if err != nil {
				t.Fatal(err)
			}
			made, problems := helm.Convert(chartOf(t, v.chart), "", "ns", helm.Options{ReleaseName: "demo", Values: v.values}, manifest.Limits{})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(want, ours(t, made)); diff != "" {
				t.Errorf("(-helm +satchel):\n%s", diff)
			}
			if len(want.Objects) == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// shuffled lists folders in another order at every look.
type shuffled struct{ fstest.MapFS }

func (s shuffled) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := s.MapFS.ReadDir(name)
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries, err
}

// TestRenderIsPure: a thousand renders are byte-identical, whatever order files come in, and whatever the number of processors,
// the time zone and the working directory are.
func TestRenderIsPure(t *testing.T) {
	files := chartOf(t, "shop")
	files["templates/order.yaml"] = &fstest.MapFile{Data: []byte(aMap + `data:
  keys: {{ keys .Values | join "," | quote }}
  values: {{ values .Values.flags | toJson | quote }}
  date: {{ date "2006-01-02 15:04 MST" 1700000000 | quote }}
  parsed: {{ toDate "2006-01-02" "2024-05-06" | unixEpoch | quote }}
  toml: {{ (fromToml "a = 1979-05-27T07:32:00").a | quote }}
  same: {{ (.Files.Glob "**.conf").AsConfig | quote }}
`)}
	files["other/app.conf"] = &fstest.MapFile{Data: []byte("another file of this name\n")}
	o := helm.Options{ReleaseName: "demo", Values: with("archive", map[string]any{"enabled": true})}
	processors, local := runtime.GOMAXPROCS(0), time.Local
	t.Cleanup(func() { runtime.GOMAXPROCS(processors); time.Local = local }) //nolint:reassign // put back
	zones := []string{"UTC", "Asia/Tokyo", "America/St_Johns"}
	var want []byte
	for i := range 1000 {
		runtime.GOMAXPROCS(1 + i%3)
		zone, err := time.LoadLocation(zones[i%len(zones)])
		if err != nil {
			t.Fatal(err)
		}
		time.Local = zone //nolint:reassign // what TZ does at the start of a process
		if i%100 == 0 {
			t.Chdir(t.TempDir())
		}
		made, problems := helm.Convert(shuffled{files}, "", "ns", o, manifest.Limits{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		got, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("render %d differs (-first +now):\n%s", i, cmp.Diff(string(want), string(got)))
		}
	}
}

// TestL1WhatTemplatesSayOfSecrets: a template can write a value in a form that nothing recognises. Where values come from
// Secrets, a problem tells where the template failed, and nothing that it says.
func TestL1WhatTemplatesSayOfSecrets(t *testing.T) {
	const encode = `.Values.password | b64enc | lower | trunc 12`
	values := map[string]any{"password": "s3cr3t-c4n4ry"}
	for name, tc := range map[string]struct{ template, says string }{
		"fail":           {`{{ fail (%s) }}`, "templates/a.yaml: line 1: the chart refuses the values; what it says is not shown"},
		"required":       {`{{ required (%s) .Values.none }}`, "templates/a.yaml: line 1: the chart refuses the values; what it says is not shown"},
		"in tpl":         {`{{ tpl (printf "{{ fail %%q }}" (%s)) . }}`, "templates/a.yaml: line 1: the chart refuses the values; what it says is not shown"},
		"a name":         {`{{ include (%s) . }}`, "templates/a.yaml: line 1: "},
		"a template":     {`{{ tpl (printf "{{ template %%q }}" (%s)) . }}`, "templates/a.yaml: line 1: "},
		"a field of tpl": {`{{ tpl (printf "{{ .none.%%s.x }}" (%s)) . }}`, "templates/a.yaml: line 1: "},
		"a conversion":   {`{{ mustFromJson (%s) }}`, "templates/a.yaml: line 1: the function mustFromJson fails"},
	} {
		files := inlineChart("templates/a.yaml", fmt.Sprintf(tc.template, encode))
		said := func(secret bool) string {
			_, problems := helm.Convert(files, "", "ns", helm.Options{Values: values, Secret: secret}, manifest.Limits{})
			return fmt.Sprint(problems)
		}
		if got := said(true); !strings.Contains(got, tc.says) || strings.Contains(got, "cznjcj") || !strings.Contains(got, "not shown, because values come from Secrets") {
			t.Errorf("%s: %s", name, got)
		}
		if got := said(false); strings.Contains(got, "not shown") || name == "fail" && !strings.Contains(got, "the chart says: cznjcj") {
			t.Errorf("%s: without Secrets: %s", name, got)
		}
	}
	files := inlineChart("templates/a.yaml", "{{ .Values.none.deeper.x }}")
	_, problems := helm.Convert(files, "", "ns", helm.Options{Values: values, Secret: true}, manifest.Limits{})
	if got := fmt.Sprint(problems); !strings.Contains(got, "nil pointer evaluating interface {}.deeper at .Values.none.deeper.x") {
		t.Errorf("what the files themselves say is not shown: %s", got)
	}
}
