// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestCRDsAreJudgedAsTheyAreApplied checks CRDs in v1beta1, which the converter writes in v1: no finding is about what the conversion
// changes, and none about the result is missing.
func TestCRDsAreJudgedAsTheyAreApplied(t *testing.T) {
	const converted = `warning P10: CustomResourceDefinition as.example.org is written in v1beta1 and was converted to v1`
	for name, tc := range map[string]struct {
		reason string
		spec   string
		want   []string
	}{
		"one version, common schema": {"v1 has them in each version",
			"version: v1, validation: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}", []string{converted}},
		"without a schema": {"v1beta1 keeps everything then, and so does v1",
			"version: v1", []string{converted}},
		"common columns and subresources": {"v1 has them in each version, under other names",
			"versions: [{name: v1, served: true, storage: true}], subresources: {status: {}}, additionalPrinterColumns: [{name: A, type: string, JSONPath: .spec.a}]", []string{converted}},
		"two versions": {"each has the schema",
			"versions: [{name: v1, served: true, storage: true}, {name: v1alpha1, served: true, storage: false}], validation: {openAPIV3Schema: {type: object}}", []string{converted}},
		"no storage version": {"the API server refuses v1 as well",
			"versions: [{name: v1, served: true, storage: false}]", []string{
				`error olm-crd: spec.versions: must have exactly one version marked as storage version`,
				converted}},
		"two storage versions": {"the API server refuses v1 as well",
			"versions: [{name: v1, served: true, storage: true}, {name: v2, served: true, storage: true}]", []string{
				`error olm-crd: spec.versions: must have exactly one version marked as storage version`, converted}},
	} {
		t.Run(name, func(t *testing.T) {
			files := tool(t, func(csv map[string]any) {
				csv["metadata"].(map[string]any)["annotations"] = map[string]any{"alm-examples": `[{"apiVersion": "example.org/v1", "kind": "A"}]`}
				csv["spec"].(map[string]any)["customresourcedefinitions"] = map[string]any{"owned": []any{
					map[string]any{"name": "as.example.org", "version": "v1", "kind": "A", "description": "a"},
				}}
			})
			files["manifests/a.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: as.example.org}
spec: {group: example.org, scope: Cluster, names: {kind: A, listKind: AList, plural: as, singular: a}, %s}
`, tc.spec)}
			if diff := cmp.Diff(tc.want, short(Bundle(files, options))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
