// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestRukPakCharts: charts are translated with their values, in both APIs.
func TestRukPakCharts(t *testing.T) {
	const second = "apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata: {name: chart}\nspec:\n  installNamespace: demo\n" +
		"  provisionerClassName: core-rukpak-io-helm\n  source: {type: image, image: {ref: 'registry.example.org/chart:v1'}}\n"
	const first = "apiVersion: core.rukpak.io/v1alpha1\nkind: BundleDeployment\nmetadata: {name: chart}\nspec:\n  provisionerClassName: core-rukpak-io-helm\n" +
		"  template: {spec: {provisionerClassName: core-rukpak-io-helm, source: {type: http, http: {url: 'https://charts.example.org/a-1.0.0.tgz'}}}}\n"
	for name, c := range map[string]struct {
		reason, manifest, values, refused string
		safety                            v1alpha1.Enforcement
	}{
		"none":        {reason: "the chart's own", manifest: second},
		"first API":   {reason: "with a template", manifest: first, values: ""},
		"a string":    {reason: "as RukPak has them", manifest: second + "  config: {values: \"a: {b: 1}\"}\n", values: `{"a":{"b":1}}`},
		"in first":    {reason: "in the first API as well", manifest: first + "  config: {values: \"a: 1\"}\n", values: `{"a":1}`},
		"a mapping":   {reason: "what was meant", manifest: second + "  config: {values: {a: 1}}\n", values: `{"a":1}`},
		"empty":       {reason: "nothing to set", manifest: second + "  config: {values: \"# none\"}\n"},
		"no YAML":     {reason: "RukPak would not take it", manifest: second + "  config: {values: \"a: [\"}\n", refused: "spec.config.values is not one document of values in YAML"},
		"twice a key": {reason: "which one is meant", manifest: second + "  config: {values: \"{a: 1, a: 2}\"}\n", refused: "spec.config.values"},
		"a list":      {reason: "values have names", manifest: second + "  config: {values: \"[a]\"}\n", refused: "not a mapping of names to values"},
		"safety off":  {reason: "CRDs are not judged", manifest: second + "  preflight: {crdUpgradeSafety: {disabled: true}}\n", safety: v1alpha1.EnforcementNone},
		"safety on":   {reason: "the default", manifest: second + "  preflight: {crdUpgradeSafety: {disabled: false}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Migrate(read([]byte(c.manifest)), sampleOptions)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%s: %v", c.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			d, ok := result.Items[0].Objects[0].(*v1alpha1.BundleDeployment)
			if !ok || d.Spec.Format != v1alpha1.FormatHelm {
				t.Fatalf("%s: %+v", c.reason, result.Items[0].Objects[0])
			}
			values, safety := "", v1alpha1.Enforcement("")
			if d.Spec.Helm != nil {
				values = string(d.Spec.Helm.Values.Raw)
			}
			if d.Spec.Apply.CRDs != nil {
				safety = d.Spec.Apply.CRDs.UpgradeSafety
			}
			if diff := cmp.Diff([]any{c.values, c.safety}, []any{values, safety}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestRukPakBundleOfAChart: a Bundle that stands alone becomes a source, whatever its format is.
func TestRukPakBundleOfAChart(t *testing.T) {
	result, err := Migrate(read([]byte("apiVersion: core.rukpak.io/v1alpha1\nkind: Bundle\nmetadata: {name: chart}\nspec:\n  provisionerClassName: core-rukpak-io-helm\n  source: {type: upload, upload: {}}\n")), sampleOptions)
	if err != nil {
		t.Fatal(err)
	}
	source, ok := result.Items[0].Objects[0].(*v1alpha1.BundleSource)
	if !ok || !source.Spec.Immutable || source.Spec.Sources[0].Upload == nil || source.Spec.Sources[0].Upload.Digest != unknownDigest {
		t.Errorf("got %+v", result.Items[0])
	}
}
