// SPDX-License-Identifier: Apache-2.0

package leftout_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch/links"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
)

func id(name string) inventory.ID {
	return inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}
}

// TestF54Hold: which objects stay because the files that they were in became links.
func TestF54Hold(t *testing.T) {
	plain := leftout.Bundle{Format: convert.PlainV0, Root: "."}
	below := leftout.Bundle{Format: convert.PlainV0, Root: "deploy/app"}
	chart := leftout.Bundle{Format: convert.Helm, Root: "chart"}
	registry := leftout.Bundle{Format: convert.RegistryV1, Root: "."}
	kustomize := leftout.Bundle{Format: convert.Kustomize, Root: "."}
	none := map[inventory.ID][]string{}
	from := func(files ...string) leftout.Applied { // objects o0, o1, ... of these files
		was := leftout.Applied{Known: true, Origins: map[inventory.ID]string{}, Held: none}
		for i, file := range files {
			was.Origins[id("o"+string(rune('0'+i)))] = file
		}
		return was
	}
	with := func(was leftout.Applied, links ...string) leftout.Applied { was.LeftOut = links; return was }
	heldBy := func(was leftout.Applied, links ...string) leftout.Applied {
		was.LeftOut, was.Held = links, map[inventory.ID][]string{id("o0"): links}
		return was
	}
	for name, tc := range map[string]struct {
		reason string
		bundle leftout.Bundle
		links  []string
		was    leftout.Applied
		want   string // of o0 and o1: the links that hold them
	}{
		"no link":               {"", plain, nil, from("a.yaml", "b.yaml"), " "},
		"its file":              {"and not the other object", plain, []string{"a.yaml"}, from("a.yaml", "b.yaml"), "a.yaml "},
		"its folder":            {"also one without the name of a manifest", plain, []string{"base"}, from("base/x/a.yaml", "basement/b.yaml"), "base "},
		"a folder of that name": {"", plain, []string{"a"}, from("a.yaml", "b.yaml"), " "},
		"two files":             {"", plain, []string{"a.yaml", "b.yaml"}, from("a.yaml", "b.yaml"), "a.yaml b.yaml"},
		"both revisions":        {"the object left for another reason", plain, []string{"c.yaml"}, with(from("a.yaml", "b.yaml"), "c.yaml"), " "},
		"another, new link":     {"a new link that was no file", plain, []string{"c.yaml"}, from("a.yaml", "b.yaml"), " "},
		"too many links":        {"any file may be one of them", plain, []string{"c.yaml", links.Everything}, from("a.yaml", "b.yaml"), ". ."},
		"too many before":       {"and they were links before", plain, []string{"c.yaml", links.Everything}, with(from("a.yaml", "b.yaml"), "c.yaml", links.Everything), " "},
		"path":                  {"", below, []string{"deploy/app/a.yaml"}, from("deploy/app/a.yaml", "deploy/app/b.yaml"), "deploy/app/a.yaml "},
		"outside of the path":   {"nothing reads it", below, []string{"a.yaml", "deploy/b.yaml"}, leftout.Applied{}, " "},
		"held before":           {"the next commit is about something else", plain, []string{"a.yaml"}, heldBy(from(), "a.yaml"), "a.yaml "},
		"held, link removed":    {"the user let the objects go", plain, nil, heldBy(from(), "a.yaml"), " "},
		"held, another link":    {"the one that held it is gone", plain, []string{"b.yaml"}, heldBy(from("a.yaml", "c.yaml"), "a.yaml"), " "},
		"held, one of two":      {"", plain, []string{"b.yaml"}, heldBy(from(), "a.yaml", "b.yaml"), "b.yaml "},
		"nothing known":         {"the cache is lost", plain, []string{"LICENSE", "a.yaml"}, leftout.Applied{}, "a.yaml a.yaml"},
		"no single file":        {"an object that is made of several files, and one of another", plain, []string{"x.yaml"}, from("", "b.yaml"), "x.yaml "},
		"template":              {"", chart, []string{"chart/templates/a.yaml"}, from("chart/templates/a.yaml", "chart/templates/b.yaml"), "chart/templates/a.yaml "},
		"template and values":   {"one of them is about all templates", chart, []string{"chart/files/z.yaml", "chart/templates/a.yaml", "chart/values.yaml"}, from("chart/templates/a.yaml", "chart/templates/b.yaml"), "chart/files/z.yaml,chart/templates/a.yaml,chart/values.yaml chart/files/z.yaml,chart/values.yaml"},
		"folder and file":       {"from two layers", plain, []string{"x", "x/a.yaml"}, from("x/a.yaml", "x/y/b.yaml"), "x,x/a.yaml x"},
		"held by all links":     {"they are one slice", plain, []string{"b.yaml", links.Everything}, heldBy(from("", "c.yaml"), "a.yaml", links.Everything), ". "},
		"folder of templates":   {"", chart, []string{"chart/templates"}, from("chart/templates/a.yaml", "chart/crds/b.yaml"), "chart/templates "},
		"CRD of a chart":        {"", chart, []string{"chart/crds/b.yaml"}, from("chart/templates/a.yaml", "chart/crds/b.yaml"), " chart/crds/b.yaml"},
		"another template":      {"it rendered nothing", chart, []string{"chart/templates/c.yaml"}, from("chart/templates/a.yaml", "chart/templates/b.yaml"), " "},
		"values":                {"they decide about every template", chart, []string{"chart/values.yaml"}, from("chart/templates/a.yaml", "chart/templates/b.yaml"), "chart/values.yaml chart/values.yaml"},
		"subchart":              {"its folder may have another name than in the output", chart, []string{"chart/charts/sub"}, from("chart/templates/a.yaml", "chart/charts/sub/templates/b.yaml"), " chart/charts/sub"},
		"package of a subchart": {"", chart, []string{"chart/charts/sub-1.0.0.tgz"}, from("chart/charts/sub/templates/b.yaml"), "chart/charts/sub-1.0.0.tgz chart/charts/sub-1.0.0.tgz"},
		"LICENSE of a chart":    {"", chart, []string{"chart/LICENSE"}, from("chart/templates/a.yaml", "chart/templates/b.yaml"), " "},
		"values in both":        {"they were a link before", chart, []string{"chart/values.yaml"}, with(from("chart/templates/a.yaml", "b"), "chart/values.yaml"), " "},
		"manifest of registry":  {"", registry, []string{"manifests/a.yaml"}, from("manifests/a.yaml", "manifests/csv.yaml"), "manifests/a.yaml "},
		"kustomization":         {"it names its files, so that a link is an error where it is needed", kustomize, []string{"a.yaml"}, leftout.Applied{}, " "},
	} {
		t.Run(name, func(t *testing.T) {
			tc.bundle.LeftOut = tc.links
			listed := inventory.New("cluster", inventory.Entry{ID: id("o0"), Version: "v1"}, inventory.Entry{ID: id("o1"), Version: "v1"})
			got := leftout.Hold(tc.bundle, tc.was, listed)
			if text := strings.Join(got[id("o0")], ",") + " " + strings.Join(got[id("o1")], ","); text != tc.want {
				t.Errorf("%s: held by %q, want %q", tc.reason, text, tc.want)
			}
			for _, held := range slices.Collect(maps.Keys(got)) {
				if !listed.Has(held) {
					t.Errorf("%s is held, and not listed", held)
				}
			}
		})
	}
}

// The namespace of an object may be known only when it is applied.
func TestF54OriginsOf(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop"}}}
	without := inventory.ID{Kind: "ConfigMap", Name: "a"}
	for want, known := range map[string]map[inventory.ID]string{"x.yaml": {id("a"): "x.yaml", without: "y.yaml"}, "y.yaml": {without: "y.yaml"}, "": {}} {
		if got := leftout.OriginsOf([]*unstructured.Unstructured{object}, known); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
