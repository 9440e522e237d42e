// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestFluxF28Schemas: a chart with a schema that cannot be used here can be installed without it.
func TestFluxF28Schemas(t *testing.T) {
	const inSubchart = "charts/sub/"
	for name, tc := range map[string]struct {
		reason, folder, schema string
	}{
		"URL":        {"published charts refer to the schema of Kubernetes", "", `{"$ref": "https://schemas.invalid/s.json"}`},
		"Property":   {"below a property", "", `{"properties": {"a": {"$ref": "https://schemas.invalid/s.json#/definitions/a"}}}`},
		"File":       {"another file", "", `{"$ref": "other.json"}`},
		"Dependency": {"of a subchart", inSubchart, `{"$ref": "https://schemas.invalid/s.json"}`},
		"Invalid":    {"no valid schema", "", `{"type": 5}`},
		"Violated":   {"values that it does not allow", "", `{"required": ["port"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			files := inlineChart("templates/a.yaml", aMap, tc.folder+"values.schema.json", tc.schema,
				"charts/sub/Chart.yaml", "{apiVersion: v2, name: sub, version: 1.0.0}")
			for use, want := range map[helm.Schemas]struct{ problems, warnings int }{
				"": {1, 0}, helm.SchemasEnforced: {1, 0}, helm.SchemasWarn: {0, 1}, helm.SchemasIgnored: {0, 0},
			} {
				made, problems := helm.Convert(files, "", "ns", helm.Options{Schemas: use}, manifest.Limits{})
				if len(problems) != want.problems || len(made.Warnings) != want.warnings || len(problems) == 0 && len(made.Manifests) != 1 {
					t.Errorf("%s, %q: %v, %v", tc.reason, use, problems, made.Warnings)
				}
				for _, warning := range made.Warnings {
					if !strings.HasPrefix(warning, tc.folder+"values.schema.json: ") {
						t.Errorf("%s: %s", tc.reason, warning)
					}
				}
			}
		})
	}
}
