// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// entries are n members of a JSON object or list.
func entries(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "#", strconv.Itoa(i))
	}
	return strings.Join(all, ",")
}

// TestM38Growth: whatever variables a template names how often, rendering takes little memory, and what is too large is refused
// before any cluster is looked at.
func TestM38Growth(t *testing.T) {
	long, kilo := strings.Repeat("x", 200_000), strings.Repeat("y", 1024)
	template := func(fields string) string { return `{"serviceAccountName":"installer",` + fields + `}` }
	many := func(n int) string {
		return template(`"processors":[{"variables":{"values":{"b":"` + strings.Repeat("$(a)", n) + `"}}}]`)
	}
	fromAnnotation := []v1alpha1.RolloutVariable{{Name: "a", Annotation: "big"}}
	value := []v1alpha1.RolloutVariable{{Name: "a", Value: &kilo}}
	tests := map[string]struct {
		reason    string
		template  string
		overrides []v1alpha1.RolloutOverride
		variables []v1alpha1.RolloutVariable
		big       string // the annotation and label of the cluster
		fits      bool
	}{
		"red-R1":            {reason: "12,000 × 200 kB", template: many(12_000), variables: fromAnnotation, big: long},
		"value":             {reason: "15,000 × 1,024 bytes, of the spec", template: many(15_000), variables: value},
		"default":           {reason: "the same, of the default", template: many(15_000), variables: []v1alpha1.RolloutVariable{{Name: "a", Label: "none", Default: &kilo}}},
		"short annotation":  {reason: "12,000 × 4 KiB", template: many(12_000), variables: fromAnnotation, big: strings.Repeat("x", MaxValueBytes)},
		"long, named once":  {reason: "a value is bounded", template: many(1), variables: fromAnnotation, big: strings.Repeat("x", MaxValueBytes+1)},
		"long, not named":   {reason: "it gets into a processor", template: template(`"processors":[{"variables":{}}]`), variables: fromAnnotation, big: strings.Repeat("x", MaxValueBytes+1)},
		"label":             {reason: "labels of the spec may be long", template: many(12_000), variables: []v1alpha1.RolloutVariable{{Name: "a", Label: "big"}}, big: long},
		"path":              {reason: "another field", template: template(`"path":"` + strings.Repeat("$(a)", 15_000) + `"`), variables: value},
		"namespace":         {reason: "another field", template: template(`"target":{"namespace":"` + strings.Repeat("$(cluster)", 6_000) + `"}`), fits: true},
		"remote account":    {reason: "another field", template: template(`"target":{"serviceAccountName":"` + strings.Repeat("$(a)", 15_000) + `"}`), variables: value},
		"release":           {reason: "another field", template: template(`"helm":{"releaseName":"` + strings.Repeat("$(a)", 15_000) + `"}`), variables: value},
		"many variables":    {reason: "each is small", template: template(`"processors":[{"variables":{"values":{` + entries(900, `"v#":"`+strings.Repeat("$(a)", 10)+`"`) + `}}}]`), variables: value},
		"values files":      {reason: "each is small", template: template(`"helm":{"valuesFrom":[` + entries(50, `{"kind":"Secret","name":"`+strings.Repeat("$(a)", 200)+`#"}`) + `]}`), variables: value},
		"too many inputs":   {reason: "as in a BundleDeployment", template: template(`"processors":[{"variables":{"valuesFrom":[` + entries(1_500, `{"kind":"Secret","name":"a#"}`) + `]}}]`)},
		"inputs in all":     {reason: "they are counted over all processors", template: template(`"processors":[` + entries(51, `{"variables":{"valuesFrom":[{"kind":"Secret","name":"a#"}]}}`) + `]`)},
		"inputs that fit":   {reason: "50 in all", template: template(`"processors":[` + entries(50, `{"variables":{"valuesFrom":[{"kind":"Secret","name":"a#"}]}}`) + `]`), fits: true},
		"processors":        {reason: "as in a BundleDeployment", template: template(`"processors":[` + entries(101, `{"names":{"prefix":"a#"}}`) + `]`)},
		"too many values":   {reason: "as in a BundleDeployment", template: template(`"processors":[{"variables":{"values":{` + entries(2_000, `"v#":"1"`) + `}}}]`)},
		"override":          {reason: "patches have references, too", template: template(`"processors":[{"variables":{}}]`), variables: value, overrides: patches(1, `{"processors":[{"variables":{"values":{"b#":"`+strings.Repeat("$(a)", 3_900)+`"}}}]}`)},
		"overrides, joined": {reason: "each of them replaces the list of processors", template: template(`"processors":[{"variables":{}}]`), variables: value, overrides: patches(32, `{"processors":[{"variables":{"values":{"b#":"`+strings.Repeat("$(a)", 20)+`"}}}]}`), fits: true},
		"overrides, long":   {reason: "each alone is small enough", template: template(`"path":"a"`), overrides: patches(32, `{"helm":{"values":{"b#":"`+strings.Repeat("z", 15_000)+`"}}}`)},
		"escaped":           {reason: "they become shorter", template: template(`"processors":[{"variables":{"values":{"b":"` + strings.Repeat("$$(a)", 12_000) + `"}}}]`), variables: value, fits: true},
		"many":              {reason: "below the limit", template: many(150), variables: value, fits: true},
		"nested":            {reason: "values are not replaced again", template: many(40), variables: []v1alpha1.RolloutVariable{{Name: "a", Value: new(strings.Repeat("$(b)", 200))}, {Name: "b", Value: &kilo}}, fits: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.BundleRolloutSpec{Variables: tc.variables, Overrides: tc.overrides}
			spec.Template.Spec.Raw = []byte(tc.template)
			if len(tc.template) > MaxTemplateBytes {
				t.Fatalf("the template has %d bytes", len(tc.template))
			}
			one := map[string]string{"big": tc.big}
			spec.Clusters = []v1alpha1.RolloutClusters{{Cluster: &v1alpha1.RolloutCluster{Name: "c1", Labels: one, Annotations: one}}}
			listed := Cluster{Name: "c2", Labels: one, Annotations: one}
			check := func(what string, do func() error) {
				var err error
				took := allocated(func() { err = do() })
				if most := uint64(32 << 20); took > most {
					t.Errorf("%s: %s allocated %d MiB, more than %d", tc.reason, what, took>>20, most>>20)
				}
				if tc.fits != (err == nil) {
					t.Errorf("%s: %s: %v", tc.reason, what, err)
				}
				if err != nil && len(err.Error()) > 4096 {
					t.Errorf("%s: %s: an error of %d bytes", tc.reason, what, len(err.Error()))
				}
				if size := (*SizeError)(nil); err != nil && !errors.As(err, &size) {
					t.Errorf("%s: %s: %v is not about a size", tc.reason, what, err)
				}
			}
			check("CheckTemplate", func() error { return CheckTemplate(spec) })
			check("Render", func() error {
				renderer, err := NewRenderer("r", "rev", Data{Template: spec.Template, Variables: spec.Variables, Overrides: spec.Overrides}, nil)
				if err != nil {
					return err
				}
				child, err := renderer.Render(&listed)
				if err == nil && len(fmt.Sprint(child.Spec.Processors)) > 2*MaxSpecBytes {
					t.Errorf("%s: the spec is too large", tc.reason)
				}
				return err
			})
		})
	}
}

// patches are n overrides of all clusters.
func patches(n int, patch string) []v1alpha1.RolloutOverride {
	all := make([]v1alpha1.RolloutOverride, n)
	for i := range all {
		all[i].Patch.Raw = []byte(strings.ReplaceAll(patch, "#", strconv.Itoa(i)))
	}
	return all
}

// Errors about a spec are kept for each cluster.
func TestM38Problems(t *testing.T) {
	spec := &v1alpha1.BundleRolloutSpec{Variables: []v1alpha1.RolloutVariable{{Name: "a", Label: "absent"}}}
	for name, template := range map[string]string{
		"missing values":  `{"serviceAccountName":"i","processors":[{"variables":{"values":{` + entries(900, `"v#":"$(a)"`) + `}}}]}`,
		"unknown fields":  `{"serviceAccountName":"i",` + entries(3_000, `"f#":1`) + `}`,
		"wrong label":     `{"serviceAccountName":"i"}`,
		"unknown in list": `{"serviceAccountName":"i","helm":{"valuesFrom":[` + entries(49, `{"kind":"Secret","name":"a","f#":1}`) + `]}}`,
	} {
		spec.Template.Spec.Raw = []byte(template)
		if name == "wrong label" {
			spec.Template.Metadata.Labels = map[string]string{"a": strings.Repeat("x", 100_000) + "$(other)"}
		}
		renderer, err := NewRenderer("r", "rev", Data{Template: spec.Template, Variables: spec.Variables}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := renderer.Render(&Cluster{Name: "c"}); err == nil || len(err.Error()) > 4096 {
			t.Errorf("%s: %d bytes", name, len(fmt.Sprint(err)))
		}
		spec.Template.Metadata.Labels = nil
	}
}

// TestM38Keys: of 500 clusters with 255 kB of annotations and labels each, what variables name is kept.
func TestM38Keys(t *testing.T) {
	spec := &v1alpha1.BundleRolloutSpec{Variables: []v1alpha1.RolloutVariable{{Name: "r", Label: "region"}, {Name: "t", Annotation: "tier"}, {Name: "b", Annotation: "big"}}}
	spec.Strategy.Waves = []v1alpha1.RolloutWave{{OrderBy: "order"}}
	spec.Strategy.Waves[0].Selector.MatchLabels = map[string]string{"ring": "one"}
	spec.Overrides = patches(1, `{}`)
	spec.Overrides[0].Selector.MatchLabels = map[string]string{"override": "x"}
	stored := Data{Variables: []v1alpha1.RolloutVariable{{Name: "old", Annotation: "old"}}}
	keys := KeysOf(spec, stored)
	if !keys.Cover(KeysOf(spec)) || KeysOf(spec).Cover(keys) || (Keys{}).Cover(keys) {
		t.Error("keys do not cover one another as expected")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := map[string]Cluster{}
	for i := range 500 {
		facts := func(more ...string) map[string]string {
			all := map[string]string{"region": "eu", "tier": "gold", "size": "3", "ring": "one", "order": "1", "override": "x", "old": "o", "secret": "s"}
			for j := range 5 {
				all["filler"+strconv.Itoa(j)] = strings.Repeat(strconv.Itoa(i), 17_000)
			}
			for _, key := range more {
				all[key] = strings.Repeat("b", 170_000)
			}
			return all
		}
		one := Cluster{Name: "c" + strconv.Itoa(i), Labels: facts(), Annotations: facts("big")}
		keys.Keep(&one)
		kept[one.Name] = one
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 8<<20 {
		t.Errorf("500 clusters hold %d MiB", held>>20)
	}
	one := kept["c7"]
	if len(one.Labels) != 4 || one.Labels["ring"] != "one" || one.Labels["override"] != "x" || one.Labels["order"] != "1" || one.Labels["region"] != "eu" {
		t.Errorf("labels: %v", one.Labels)
	}
	if len(one.Annotations) != 3 || one.Annotations["tier"] != "gold" || one.Annotations["old"] != "o" {
		t.Errorf("%d annotations", len(one.Annotations))
	}
	if _, err := values(spec.Variables, &one); err == nil {
		t.Error("a value that is too long is accepted after it was shortened")
	}
	runtime.KeepAlive(kept)
}
