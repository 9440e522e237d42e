// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// listed are objects in all states.
func listed(t *testing.T) []group {
	t.Helper()
	called := func(name string) func(*v1alpha1.BundleDeployment) {
		return func(d *v1alpha1.BundleDeployment) { d.Name = name }
	}
	found := []group{
		{kind: deployments, objects: []object{
			aDeployment(),
			aDeployment(called("brand-new"), never),
			aDeployment(called("broken"), with(no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed,
				"Deployment demo/broken: "+strings.Repeat("the image cannot be pulled and ", 8)+"that is all\nsecond line")),
				func(d *v1alpha1.BundleDeployment) { d.Status.Objects.Unhealthy = 2 }),
			aDeployment(called("changed"), func(d *v1alpha1.BundleDeployment) { d.Generation = 3 }),
			aDeployment(called("proposed"), proposed(v1alpha1.ReasonApprovalRequired, "the plan waits")),
			aDeployment(called("paused"), func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }),
			aDeployment(called("leaving"), func(d *v1alpha1.BundleDeployment) { at := ago(time.Second); d.DeletionTimestamp = &at }),
		}},
		{kind: sources, objects: []object{
			aSource(),
			aSource(severalSources, func(s *v1alpha1.BundleSource) { s.Name = "several" }),
			aSource(unpublished, failing(v1alpha1.ReasonNotFound, "image example.org/podinfo:v1.3.0: not found (404)"),
				func(s *v1alpha1.BundleSource) { s.Name = "wrong" }),
		}},
	}
	for i := range found {
		g := &found[i]
		for _, item := range g.objects {
			item.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(g.kind.name))
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
			if err != nil {
				t.Fatal(err)
			}
			g.raw = append(g.raw, &unstructured.Unstructured{Object: content})
		}
	}
	return found
}

func TestGetOutput(t *testing.T) {
	all := listed(t)
	one := []group{{kind: sources, objects: all[1].objects[:1], raw: all[1].raw[:1]}}
	for name, tc := range map[string]struct {
		reason  string
		options getOptions
		groups  []group
		single  bool
	}{
		"table":          {reason: "the everyday view", options: getOptions{output: outputTable}, groups: all[:1]},
		"table-sources":  {reason: "sources have no objects", options: getOptions{output: outputTable}, groups: all[1:]},
		"table-all":      {reason: "two kinds, two tables", options: getOptions{output: outputTable}, groups: all},
		"wide":           {reason: "everything, uncut", options: getOptions{output: outputWide}, groups: all},
		"all-namespaces": {reason: "the namespace comes first", options: getOptions{output: outputTable, everywhere: true}, groups: all},
		"name":           {reason: "what kubectl accepts", options: getOptions{output: outputName}, groups: all},
		"json":           {reason: "one object as it is", options: getOptions{output: outputJSON}, groups: one, single: true},
		"yaml-list":      {reason: "a List, as kubectl has it", options: getOptions{output: outputYAML}, groups: one},
		"json-nothing":   {reason: "scripts get an empty list", options: getOptions{output: outputJSON}},
		"nothing":        {reason: "people get a sentence", options: getOptions{output: outputTable}},
		"nothing-else":   {reason: "the sentence says what was looked for", options: getOptions{output: outputTable, selector: "a=b", everywhere: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := testApp(&out).printGroups(tc.options, tc.groups, "demo", tc.single); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			golden(t, "get/"+name, out.String())
		})
	}
}

func TestParseTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"nothing":         {reason: "deployments are what users ask for", want: []string{"deployment:"}},
		"kind":            {reason: "plural", args: []string{"sources"}, want: []string{"source:"}},
		"short name":      {reason: "as kubectl knows it", args: []string{"bsrc", "a"}, want: []string{"source:a"}},
		"capitals":        {reason: "as manifests write it", args: []string{"BundleSource", "a"}, want: []string{"source:a"}},
		"all":             {reason: "both kinds", args: []string{"all"}, want: []string{"deployment:", "source:"}},
		"name":            {reason: "a deployment", args: []string{"a"}, want: []string{"deployment:a"}},
		"names":           {reason: "several", args: []string{"deployment", "a", "b"}, want: []string{"deployment:a", "deployment:b"}},
		"qualified":       {reason: "what -o name prints", args: []string{"bundlesource.satchel.dev/a", "b"}, want: []string{"source:a", "deployment:b"}},
		"named as a kind": {reason: "the kind first says that the rest are names", args: []string{"deployment", "sources"}, want: []string{"deployment:sources"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, found := range parseTargets(tc.args) {
				got = append(got, found.kind.word+":"+found.name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	got := nearest("podinof", []string{"zzz", "podinfo", "podinfo-2", "pod", "info", "other", "more"})
	if diff := cmp.Diff([]string{"podinfo", "podinfo-2", "pod", "info", "more"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Second: "1m30s", 30 * time.Second: "30s", 24 * time.Hour: "24h", 0: "0s",
		time.Hour + 30*time.Second: "1h0m30s", 10 * time.Hour: "10h",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%s) = %s, want %s", d, got, want)
		}
	}
}
