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
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/list"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/spelling"
	"github.com/satchel-dev/satchel/internal/view"
)

// listed are objects in all states.
func listed(t *testing.T) []kit.Group {
	t.Helper()
	called := func(name string) func(*v1alpha1.BundleDeployment) {
		return func(d *v1alpha1.BundleDeployment) { d.Name = name }
	}
	found := []kit.Group{
		{Kind: kit.Deployments, Objects: []view.Object{
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
		{Kind: kit.Sources, Objects: []view.Object{
			aSource(),
			aSource(severalSources, func(s *v1alpha1.BundleSource) { s.Name = "several" }),
			aSource(unpublished, failing(v1alpha1.ReasonNotFound, "image example.org/podinfo:v1.3.0: not found (404)"),
				func(s *v1alpha1.BundleSource) { s.Name = "wrong" }),
		}},
	}
	for i := range found {
		g := &found[i]
		for _, item := range g.Objects {
			item.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(g.Kind.Name))
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
			if err != nil {
				t.Fatal(err)
			}
			g.Raw = append(g.Raw, &unstructured.Unstructured{Object: content})
		}
	}
	return found
}

func TestGetOutput(t *testing.T) {
	all := listed(t)
	one := []kit.Group{{Kind: kit.Sources, Objects: all[1].Objects[:1], Raw: all[1].Raw[:1]}}
	for name, tc := range map[string]struct {
		reason  string
		options list.Options
		groups  []kit.Group
		single  bool
	}{
		"table":          {reason: "the everyday view", options: list.Options{Output: list.Format(printer.OutputTable)}, groups: all[:1]},
		"table-sources":  {reason: "sources have no objects", options: list.Options{Output: list.Format(printer.OutputTable)}, groups: all[1:]},
		"table-all":      {reason: "two kinds, two tables", options: list.Options{Output: list.Format(printer.OutputTable)}, groups: all},
		"wide":           {reason: "everything, uncut", options: list.Options{Output: list.Format(printer.OutputWide)}, groups: all},
		"all-namespaces": {reason: "the namespace comes first", options: list.Options{Output: list.Format(printer.OutputTable), GetOptions: kit.GetOptions{Everywhere: true}}, groups: all},
		"name":           {reason: "what kubectl accepts", options: list.Options{Output: list.Format(printer.OutputName)}, groups: all},
		"json":           {reason: "one object as it is", options: list.Options{Output: list.Format(printer.OutputJSON)}, groups: one, single: true},
		"yaml-list":      {reason: "a List, as kubectl has it", options: list.Options{Output: list.Format(printer.OutputYAML)}, groups: one},
		"json-nothing":   {reason: "scripts get an empty list", options: list.Options{Output: list.Format(printer.OutputJSON)}},
		"not-a-header":   {reason: "for scripts", options: list.Options{Output: list.Format(printer.OutputTable), NoHeaders: true}, groups: all[1:]},
		"jsonpath":       {reason: "as in kubectl", options: list.Options{Output: "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}"}, groups: all},
		"custom-columns": {reason: "as in kubectl", options: list.Options{Output: "custom-columns=NAME:.metadata.name,REASON:.status.conditions[0].reason"}, groups: all},
		"one-jsonpath":   {reason: "a named object is no list", options: list.Options{Output: "jsonpath={.metadata.name}"}, groups: one, single: true},
		"nothing":        {reason: "people get a sentence", options: list.Options{Output: list.Format(printer.OutputTable)}},
		"nothing-else":   {reason: "the sentence says what was looked for", options: list.Options{Output: list.Format(printer.OutputTable), GetOptions: kit.GetOptions{Selector: "a=b", Everywhere: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := list.PrintGroups(testApp(&out), tc.options, tc.groups, "demo", tc.single); err != nil {
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
		"all":             {reason: "all kinds", args: []string{"all"}, want: []string{"deployment:", "source:", "catalog:"}},
		"name":            {reason: "a deployment", args: []string{"a"}, want: []string{"deployment:a"}},
		"names":           {reason: "several", args: []string{"deployment", "a", "b"}, want: []string{"deployment:a", "deployment:b"}},
		"qualified":       {reason: "what -o name prints", args: []string{"bundlesource.satchel.dev/a", "b"}, want: []string{"source:a", "deployment:b"}},
		"named as a kind": {reason: "the kind first says that the rest are names", args: []string{"deployment", "sources"}, want: []string{"deployment:sources"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, found := range kit.ParseTargets(tc.args) {
				got = append(got, found.Kind.Word+":"+found.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	got := spelling.Nearest("podinof", []string{"zzz", "podinfo", "podinfo-2", "pod", "info", "other", "more"})
	if diff := cmp.Diff([]string{"podinfo", "podinfo-2", "pod", "info", "more"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Second: "1m30s", 30 * time.Second: "30s", 24 * time.Hour: "24h", 0: "0s",
		time.Hour + 30*time.Second: "1h0m30s", 10 * time.Hour: "10h",
	} {
		if got := view.Short(d); got != want {
			t.Errorf("short(%s) = %s, want %s", d, got, want)
		}
	}
}

// TestGetWatch lists, and then writes a line for each change.
func TestGetWatch(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment())
	c.Create(aSource())
	all, name := c.Follow("get", "all", "-w"), c.Follow("get", "podinfo", "-w", "-o", "name")
	all.Until("source/podinfo")
	name.Until("bundledeployment.satchel.dev/podinfo\n")
	c.Create(aDeployment(called("second"), never))
	all.Until("deployment/second")
	before := strings.Count(name.Out.String(), "\n")
	d := c.deployment("podinfo")
	if err := c.Client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	all.Until("deleted\n")
	name.Until("podinfo\nbundledeployment.satchel.dev/podinfo\n")
	if after := strings.Count(name.Out.String(), "\n"); before != 1 || after != 2 || strings.Contains(name.Out.String(), "second") {
		t.Errorf("a watch of one name writes %q", name.Out)
	}
	all.Interrupt()
	name.Interrupt()
	c.Want(c.Satchel("get", "-w", "-o", "json"), kit.ExitError, "-w writes a line for each change: leave -o json out")
}

// TestGetNotReady lists what is not Ready only, and says so when all are.
func TestGetNotReady(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment())
	c.Want(c.Satchel("get", "--not-ready"), kit.ExitOK, "Nothing that is not Ready was found in the namespace "+c.Namespace)
	c.Create(aDeployment(called("broken"), with(no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "no"))))
	got := c.Satchel("get", "all", "--not-ready", "--no-headers")
	if c.Want(got, kit.ExitOK, "broken"); strings.Contains(got.Out, "podinfo ") || strings.Contains(got.Out, "NAME") {
		t.Errorf("got %s", got)
	}
	c.Want(c.Satchel("get", "-o", "xml"), kit.ExitError, `"xml" is not one of: table, wide, name, json, yaml, jsonpath=, custom-columns=`)
	c.Want(c.Satchel("get", "-o", "jsonpath={.a"), kit.ExitError, "jsonpath")
}

// TestTableWidth cuts the last column at the width of a terminal.
func TestTableWidth(t *testing.T) {
	table := printer.Table{Headers: []string{"A", "MESSAGE"}, Width: 40}
	table.Add("x", strings.Repeat("word ", 20))
	table.Add("y", "short")
	for line := range strings.Lines(table.Render(printer.Style{})) {
		if width := len([]rune(strings.TrimSuffix(line, "\n"))); width > 40 {
			t.Errorf("%d characters in %q", width, line)
		}
	}
	table.Width = 0
	if !strings.Contains(table.Render(printer.Style{}), strings.Repeat("word ", 19)+"word") {
		t.Error("it is cut without a terminal")
	}
}
