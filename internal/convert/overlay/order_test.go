// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

// shop is an object with a variable in its name, and two that name it.
const shop = `apiVersion: v1
kind: ConfigMap
metadata: {name: "shop-${region}"}
data: {region: "${region:=none}"}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: web, image: "quay.io/org/web:1", envFrom: [{configMapRef: {name: "shop-${region}"}}]}]
  volumes: [{name: s, configMap: {name: "shop-${region}"}}]
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: widget}
spec: {podRef: {name: web}}
`

// TestOrder: each processor sees what those before it made, whatever their kinds.
func TestOrder(t *testing.T) {
	names := func(prefix string) overlay.Processor {
		return overlay.Processor{Names: &overlay.Names{Prefix: prefix}}
	}
	patch := func(kind, name, text string) overlay.Processor {
		return overlay.Processor{Patch: &overlay.Patch{Text: text, Target: &overlay.Selector{Kind: kind, Name: name}}}
	}
	note := func(name, text string) overlay.Processor {
		return patch("Pod", name, "metadata: {annotations: {note: '"+text+"'}}")
	}
	region := overlay.Processor{Variables: &overlay.Variables{Given: map[string]string{"region": "eu"}}}
	retag := overlay.Processor{Images: []overlay.Image{{Name: "quay.io/org/web", NewTag: "2"}}}
	mirror := overlay.Processor{ImageRewrites: []overlay.Rewrite{{From: "quay.io", To: "m/quay"}}}
	label := overlay.Processor{Metadata: &overlay.Metadata{Labels: map[string]string{"team": "${team:=a}"}}}
	rename := patch("Pod", "web", "[{op: replace, path: /metadata/name, value: api}]")

	for name, c := range map[string]struct {
		reason      string
		all         []overlay.Processor
		has, lacks  []string
		warns, says string
	}{
		"patch before names": {
			reason: "its target has the name in the bundle", all: []overlay.Processor{note("web", "x"), names("p-")},
			has: []string{"note: x", "name: p-web"}, warns: `Widget p-widget: spec.podRef.name is "web", and the Pod of this name is called p-web now.`,
		},
		"patch after names": {
			reason: "its target has the name that the object has now", all: []overlay.Processor{names("p-"), note("p-web", "x")},
			has: []string{"note: x"}, warns: `Widget p-widget: spec.podRef.name is "web"`,
		},
		"the name before names": {
			reason: "no object has it any more", all: []overlay.Processor{names("p-"), note("web", "x")},
			lacks: []string{"note: x"}, warns: "spec.processors[1].patch selects no object (kind Pod, name web)",
		},
		"a patch that names its object": {
			reason: "by the name that the object has now", all: []overlay.Processor{names("p-"), {Patch: &overlay.Patch{Text: "apiVersion: v1\nkind: Pod\nmetadata: {name: p-web, annotations: {note: x}}"}}},
			has: []string{"note: x"}, warns: "Widget",
		},
		"a patch that names what was": {
			reason: "no object has the name any more", all: []overlay.Processor{names("p-"), {Patch: &overlay.Patch{Text: "apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {note: x}}"}}},
			lacks: []string{"note: x"}, warns: "spec.processors[1].patch is of Pod web, which the bundle does not contain",
		},
		"a reference that a patch corrects": {
			reason: "there is nothing to warn of", all: []overlay.Processor{names("p-"), patch("Widget", "", "spec: {podRef: {name: p-web}}")},
			has: []string{"podRef:\n    name: p-web"},
		},
		"a reference to a name between two others": {
			reason: "the warning has the name in the end", all: []overlay.Processor{names("p-"), patch("Widget", "", "spec: {podRef: {name: p-web}}"), names("q-")},
			warns: `Widget q-p-widget: spec.podRef.name is "p-web", and the Pod of this name is called q-p-web now.`,
		},
		"names twice": {
			reason: "references follow each time, and there is one warning", all: []overlay.Processor{names("p-"), names("q-")},
			has: []string{"envFrom:\n    - configMapRef:\n        name: q-p-shop-${region}", "name: q-p-web"}, warns: `spec.podRef.name is "web", and the Pod of this name is called q-p-web now.`,
		},
		"names around patches": {
			reason: "a name that a patch gives is followed, too", all: []overlay.Processor{
				names("p-"), patch("ConfigMap", ".*", "[{op: replace, path: /metadata/name, value: settings}]"), label, region, names("q-"),
			},
			has: []string{"configMapRef:\n        name: q-settings", "name: q-p-web"}, warns: "Widget",
		},
		"variables before patch": {
			reason: "what the patch adds is not replaced", all: []overlay.Processor{region, note("web", "${region}")},
			has: []string{"note: ${region}", "name: shop-eu", "region: eu"},
		},
		"variables after patch": {
			reason: "what the patch adds is replaced", all: []overlay.Processor{note("web", "${region}"), region},
			has: []string{"note: eu"},
		},
		"a target after variables": {
			reason: "the object has another name", all: []overlay.Processor{region, patch("ConfigMap", "shop-eu", "data: {a: b}")},
			has: []string{"a: b"},
		},
		"a target before variables": {
			reason: "the name has the variable", all: []overlay.Processor{patch("ConfigMap", `shop-\$\{region\}`, "data: {a: b}"), region},
			has: []string{"a: b"},
		},
		"variables before names": {
			reason: "references to the name with its value are followed", all: []overlay.Processor{region, names("p-")},
			has: []string{"configMapRef:\n        name: p-shop-eu", "configMap:\n      name: p-shop-eu"}, warns: "Widget",
		},
		"variables after names": {
			reason: "references to the name with the variable are followed", all: []overlay.Processor{names("p-"), region},
			has: []string{"configMapRef:\n        name: p-shop-eu", "configMap:\n      name: p-shop-eu"}, warns: "Widget",
		},
		"variables in names": {
			reason: "names are as they are written", all: []overlay.Processor{names("${region}-"), region},
			has: []string{"name: eu-web"}, warns: "Widget",
		},
		"variables twice": {
			reason: "a value of the first may be a variable of the second", all: []overlay.Processor{
				{Variables: &overlay.Variables{Given: map[string]string{"region": "${zone}"}}}, {Variables: &overlay.Variables{Given: map[string]string{"zone": "eu-1"}}},
			},
			has: []string{"name: shop-eu-1"},
		},
		"the first variables have no value": {
			reason: "the message names the item", all: []overlay.Processor{label, {Variables: &overlay.Variables{Given: map[string]string{"zone": "x"}}}, region},
			says: "ConfigMap shop-${region}: spec.processors[1].variables: metadata.name: the variable region has no value",
		},
		"the same variable twice": {
			reason: "the second has nothing to do, and is not unused", all: []overlay.Processor{region, region}, has: []string{"name: shop-eu"},
		},
		"an unused variable": {
			reason: "the warning names the item", all: []overlay.Processor{region, {Variables: &overlay.Variables{Given: map[string]string{"zone": "x"}}}},
			warns: "spec.processors[1].variables.values: no object has the variable zone",
		},
		"images before rewrites": {
			reason: "the name is the one in the bundle", all: []overlay.Processor{retag, mirror}, has: []string{"image: m/quay/org/web:2"},
		},
		"images after rewrites": {
			reason: "the image has another name", all: []overlay.Processor{mirror, retag},
			has: []string{"image: m/quay/org/web:1"}, warns: "spec.processors[1].images[0]: no container has the image quay.io/org/web",
		},
		"rewrites twice": {
			reason: "within one item an image is moved once; the second item moves it again", all: []overlay.Processor{
				mirror, {ImageRewrites: []overlay.Rewrite{{From: "m/quay", To: "n"}}},
			},
			has: []string{"image: n/org/web:1"},
		},
		"metadata before variables": {
			reason: "a variable in a label is replaced", all: []overlay.Processor{label, region}, has: []string{"team: a"},
		},
		"metadata after variables": {
			reason: "the label is refused, since nothing replaces the variable", all: []overlay.Processor{region, label},
			says: `spec.processors[1].metadata.labels["team"]: the value is no value of a label`,
		},
		"a variable that is no label": {
			reason: "the message quotes no value", all: []overlay.Processor{label, {Variables: &overlay.Variables{Given: map[string]string{"region": "x"}, Read: map[string]string{"team": "hunter 22"}}}},
			says: `spec.processors[0].metadata.labels["team"]: with its variables, the value is no value of a label; correct it, or the values of the variables`,
		},
		"metadata twice": {
			reason: "the later one takes precedence", all: []overlay.Processor{
				{Metadata: &overlay.Metadata{Labels: map[string]string{"a": "x", "b": "x"}}}, {Metadata: &overlay.Metadata{Labels: map[string]string{"b": "y"}}},
			},
			has: []string{"a: x\n    b: \"y\""},
		},
		"a target by a label from before": {
			reason: "selectors see metadata of processors before", all: []overlay.Processor{
				{Metadata: &overlay.Metadata{Labels: map[string]string{"team": "a"}}}, {Patch: &overlay.Patch{Text: "metadata: {annotations: {note: x}}", Target: &overlay.Selector{Kind: "Pod", LabelSelector: "team=a"}}},
			},
			has: []string{"note: x"},
		},
		"patches that follow one another": {
			reason: "as in kustomize, a target has the name in the bundle, or the new one", all: []overlay.Processor{rename, note("web", "x"), patch("Pod", "api", "metadata: {labels: {new: x}}")},
			has: []string{"note: x", "new: x", "name: api"}, warns: "Widget",
		},
		"patches with others between": {
			reason: "the first is done", all: []overlay.Processor{rename, {Metadata: &overlay.Metadata{Labels: map[string]string{"team": "a"}}}, note("web", "x")},
			lacks: []string{"note: x"}, warns: "spec.processors[2].patch selects no object (kind Pod, name web)",
		},
		"a patch that deletes": {
			reason: "later processors do not see the object", all: []overlay.Processor{patch("Pod", "web", "$patch: delete"), note("web", "x"), retag},
			lacks: []string{"kind: Pod"}, warns: "spec.processors[1].patch selects no object (kind Pod, name web)\nspec.processors[2].images[0]: no container has the image quay.io/org/web",
		},
		"variables that make two objects one": {
			reason: "the message names the item", all: []overlay.Processor{label, {Variables: &overlay.Variables{Given: map[string]string{"region": "x"}}}, patch("ConfigMap", "", "[{op: replace, path: /kind, value: Pod}, {op: replace, path: /metadata/name, value: '${n}'}]"), {Variables: &overlay.Variables{Given: map[string]string{"n": "web"}}}},
			says: "after spec.processors[3].variables, two objects of the bundle are the same one: ConfigMap shop-${region} and Pod web",
		},
		"patches that make two objects one": {
			reason: "the message names all of the step", all: []overlay.Processor{label, region, note("web", "x"), patch("ConfigMap", "", "[{op: replace, path: /kind, value: Pod}]"), patch("Pod", ".*", "[{op: replace, path: /metadata/name, value: x}]")},
			says: "after spec.processors[2].patch to spec.processors[4].patch, two objects",
		},
		"a kind that a patch changes": {
			reason: "references to the new kind are followed", all: []overlay.Processor{
				region, patch("ConfigMap", "", "[{op: replace, path: /kind, value: Secret}]"), patch("Pod", "", "spec: {volumes: [{name: s, configMap: null, secret: {secretName: shop-eu}}]}"), names("p-"),
			},
			has: []string{"secretName: p-shop-eu"}, warns: "Widget",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, warnings, problems := outcome(t, shop, list(c.all...))
			if !strings.Contains(problems, c.says) || c.says == "" && problems != "" || strings.Contains(problems, "hunter") {
				t.Fatalf("%s: said %q, want %q", c.reason, problems, c.says)
			}
			for _, text := range c.has {
				if !strings.Contains(objects, text) {
					t.Errorf("%s: no %q in\n%s", c.reason, text, objects)
				}
			}
			for _, text := range c.lacks {
				if strings.Contains(objects, text) {
					t.Errorf("%s: %q in\n%s", c.reason, text, objects)
				}
			}
			got := strings.Join(warnings, "\n")
			if !strings.Contains(got, c.warns) || c.warns == "" && got != "" || strings.Count(got, "podRef") > 1 {
				t.Errorf("%s: warned %q, want %q", c.reason, got, c.warns)
			}
		})
	}
}

// TestProcessedAgain: processors that say where something ends change nothing in what they made; the others do it again.
func TestProcessedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		all     []overlay.Processor
		changes bool
	}{
		"no processors":  {},
		"patch":          {all: patches(overlay.Patch{Text: "spec: {replicas: 3, template: {spec: {containers: [{name: log, image: x}]}}}", Target: &overlay.Selector{Kind: "Deployment"}})},
		"images":         {all: []overlay.Processor{{Images: []overlay.Image{{Name: "nginx", NewTag: "3"}}}}},
		"rewrites":       {all: []overlay.Processor{{ImageRewrites: []overlay.Rewrite{{From: "quay.io", To: "m"}}}}},
		"variables":      {all: []overlay.Processor{{Variables: &overlay.Variables{Given: map[string]string{"a": "${a}"}}}}},
		"metadata":       {all: []overlay.Processor{{Metadata: &overlay.Metadata{Labels: map[string]string{"team": "a"}}}}},
		"names":          {all: []overlay.Processor{{Names: &overlay.Names{Prefix: "p-"}}}, changes: true},
		"longer rewrite": {all: []overlay.Processor{{ImageRewrites: []overlay.Rewrite{{From: "quay.io", To: "quay.io/m"}}}}, changes: true},
	} {
		once, _, problems := outcome(t, web+"---\n"+settings, list(c.all...))
		if problems != "" {
			t.Fatal(problems)
		}
		twice, _, problems := outcome(t, strings.TrimPrefix(once, "---\n"), list(c.all...))
		asOne, _, more := outcome(t, web+"---\n"+settings, list(slices.Concat(c.all, c.all)...))
		if problems != "" || more != "" {
			t.Fatal(problems, more)
		}
		if changes := once != twice; changes != c.changes {
			t.Errorf("%s: changes again %t, want %t: %s", name, changes, c.changes, cmp.Diff(once, twice))
		}
		if diff := cmp.Diff(twice, asOne); diff != "" {
			t.Errorf("%s: twice in one list is not the same as two times: %s", name, diff)
		}
	}
}
