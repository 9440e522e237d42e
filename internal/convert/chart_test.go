// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/convert"
)

// hookOf is an object of a chart that is a hook for events.
func hookOf(kind, name, events string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: %s\nmetadata: {name: %s, annotations: {helm.sh/hook: %q}}\n", kind, name, events)
}

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  names: {kind: Widget, plural: widgets}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true}]
`

// TestHooks: they are normalised as objects are, apart from them, and an object may be a hook for an event once.
func TestHooks(t *testing.T) {
	files := tree("Chart.yaml", chartYAML, "templates/a.yaml", chartTemplate, "crds/widgets.yaml", widgets,
		"templates/hooks.yaml", hookOf("ConfigMap", "before", "pre-install")+"status: {x: 1}\n"+hookOf("ConfigMap", "x", "post-install")+
			strings.Replace(hookOf("Widget", "wide", "pre-install"), "v1", "example.org/v1", 1)+
			strings.Replace(hookOf("Gadget", "unknown", "pre-install"), "v1", "example.org/v1", 1)+
			strings.Replace(hookOf("ConfigMap", "elsewhere", "pre-install"), "{name", "{namespace: other, name", 1))
	result, err := convert.Convert(files, convert.Options{InstallNamespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range result.Hooks {
		got = append(got, h.Object.GetKind()+" "+h.Object.GetNamespace()+"/"+h.Object.GetName())
		if _, there := h.Object.Object["status"]; there {
			t.Errorf("%s has a status", h.Object.GetName())
		}
	}
	want := []string{"ConfigMap ns/before", "ConfigMap other/elsewhere", "Gadget /unknown", "Widget /wide", "ConfigMap ns/x"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("hooks %v, want %v", got, want)
	}
	if fmt.Sprint(result.RequiredNamespaces) != "[ns other]" || len(result.Undecided) != 1 || len(result.Objects) != 2 || result.Objects[0].GetKind() != "CustomResourceDefinition" {
		t.Errorf("namespaces %v, undecided %v, objects %v", result.RequiredNamespaces, result.Undecided, result.Objects)
	}
	files = tree("Chart.yaml", chartYAML, "templates/hooks.yaml", hookOf("ConfigMap", "a", "pre-install,pre-upgrade")+hookOf("ConfigMap", "a", "post-install")+hookOf("ConfigMap", "a", "pre-upgrade"))
	if _, err := convert.Convert(files, convert.Options{InstallNamespace: "ns"}); err == nil || !strings.Contains(err.Error(), "templates/hooks.yaml (document 3): ConfigMap a: the same object is a hook for pre-upgrade twice") {
		t.Errorf("the same hook twice: %v", err)
	}
}

// TestChartsWithoutDuplicates: an object that two templates write is refused, and so is a definition that differs.
func TestChartsWithoutDuplicates(t *testing.T) {
	for name, files := range map[string][]string{
		"templates":   {"templates/a.yaml", chartTemplate, "templates/b.yaml", chartTemplate},
		"definitions": {"crds/a.yaml", widgets, "crds/b.yaml", strings.Replace(widgets, "Cluster", "Namespaced", 1)},
		"both":        {"crds/a.yaml", widgets, "templates/b.yaml", widgets},
	} {
		_, err := convert.Convert(tree(append([]string{"Chart.yaml", chartYAML}, files...)...), convert.Options{InstallNamespace: "ns"})
		if err == nil || !strings.Contains(err.Error(), "the same object is already in") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := convert.Convert(tree("Chart.yaml", chartYAML, "crds/a.yaml", widgets, "crds/b.yaml", widgets), convert.Options{InstallNamespace: "ns"}); err != nil {
		t.Errorf("a definition twice: %v", err)
	}
}
