// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// deploymentNamed is an entry of a CSV.
func deploymentNamed(name string) string {
	return fmt.Sprintf("      - {name: %s, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: example.org/c:1}]}}}}\n", name)
}

func hookNamed(name, deployment string) string {
	return fmt.Sprintf("  - {type: ValidatingAdmissionWebhook, generateName: %s, deploymentName: %s, admissionReviewVersions: [v1], sideEffects: None}\n", name, deployment)
}

func bundleOf(deployments, hooks string) string {
	return csv + "  install:\n    strategy: deployment\n    spec:\n" +
		"      clusterPermissions: [{serviceAccountName: all, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}]\n" +
		"      deployments:\n" + deployments + "  webhookdefinitions:\n" + hooks
}

// TestM21Sizes renders bundles of unusual size; names are valid and no two objects share one.
func TestM21Sizes(t *testing.T) {
	var many, hooks, colliding, collidingHooks strings.Builder
	for i := range 500 {
		many.WriteString(deploymentNamed(fmt.Sprintf("operator-%d", i)))
		hooks.WriteString(hookNamed(fmt.Sprintf("hook-%d.example.org", i), fmt.Sprintf("operator-%d", i)))
	}
	for i := range 20 {
		name := strings.Repeat("long.", 45) + fmt.Sprintf("operator-%d", i)
		colliding.WriteString(deploymentNamed(name))
		collidingHooks.WriteString(hookNamed(fmt.Sprintf("hook-%d.example.org", i), name))
	}
	for name, c := range map[string]struct {
		manifest string
		objects  int
	}{
		"500 deployments": {bundleOf(many.String(), hooks.String()), 3 + 500*5},
		// OLM's names of issuers are cut to the same here; as the issuers are equal, one serves all.
		"long names": {bundleOf(colliding.String(), collidingHooks.String()), 3 + 20*4 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", c.manifest)
			result, err := convert.Convert(files, withV1(registryv1.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, o := range result.Objects {
				id := o.GetKind() + " " + o.GetName()
				if seen[id] {
					t.Errorf("%s is there twice", id)
				}
				seen[id] = true
				if len(validation.IsDNS1123Subdomain(o.GetName())) > 0 || o.GetKind() == "Service" && len(validation.IsDNS1035Label(o.GetName())) > 0 {
					t.Errorf("%s has no valid name", id)
				}
			}
			for _, o := range result.Objects {
				common, _, _ := unstructured.NestedString(o.Object, "spec", "commonName")
				if len(common) > 64 {
					t.Errorf("%s %s has a common name of %d bytes, and X.509 ends at 64", o.GetKind(), o.GetName(), len(common))
				}
			}
			if len(result.Objects) != c.objects {
				t.Errorf("%d objects, want %d", len(result.Objects), c.objects)
			}
		})
	}
}

// TestM21TooLarge: a CSV of 5 MiB is one problem, not a long wait: no API server could hold it.
func TestM21TooLarge(t *testing.T) {
	files := tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", csv+"  description: "+strings.Repeat("x", 5<<20))
	_, err := convert.Convert(files, withV1(registryv1.Options{}))
	if err == nil || !strings.Contains(err.Error(), "manifests/csv.yaml (document 1): ClusterServiceVersion ") || !strings.Contains(err.Error(), "and may have 1572864") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

// TestM21NoQuadraticTime: bundles made to be slow are not. The bound is for noisy machines; quadratic work takes minutes.
func TestM21NoQuadraticTime(t *testing.T) {
	const bound = 30 * time.Second
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	crds := many(5_000, "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x%d.example.org}\nspec: {group: example.org, scope: Namespaced, names: {kind: Role}}\n")
	for name, files := range map[string][]string{
		"webhooks of one deployment": {bundleOf(deploymentNamed("d"), many(12_000, "  - {type: ValidatingAdmissionWebhook, generateName: h%d.example.org, deploymentName: d, admissionReviewVersions: [v1], sideEffects: None}\n"))},
		"owned definitions":          {strings.Replace(csv, "spec:\n", "spec:\n  customresourcedefinitions:\n    owned:\n"+many(30_000, "    - {name: x%d.example.org, version: v1, kind: X}\n"), 1), crds},
		"converted definitions":      {bundleOf(deploymentNamed("d"), "  - type: ConversionWebhook\n    generateName: c.example.org\n    deploymentName: d\n    admissionReviewVersions: [v1]\n    sideEffects: None\n    conversionCRDs:\n"+many(60_000, "    - x%d.example.org\n"))},
		"pull secrets":               {csv, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\nimagePullSecrets:\n" + many(40_000, "- {name: a%d}\n") + "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\nimagePullSecrets:\n" + many(40_000, "- {name: b%d}\n")},
		"custom resources":           {csv, crds, many(10_000, "---\napiVersion: other.example.org/v1\nkind: Role\nmetadata: {name: x%d}\n")},
		"aliases in many documents":  {csv, many(5_000, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\nx: &a [1,1,1,1,1,1,1,1,1]\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nz: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nu: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n")},
	} {
		t.Run(name, func(t *testing.T) {
			tree := tree("metadata/annotations.yaml", annotations)
			for i, content := range files {
				tree[fmt.Sprintf("manifests/%d.yaml", i)] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
			}
			start := time.Now()
			_, err := convert.Convert(tree, withV1(registryv1.Options{IncludeCustomResources: true}))
			took := time.Since(start)
			t.Logf("%v, refused: %v", took.Round(time.Millisecond), err != nil)
			if took > bound {
				t.Errorf("took %v", took)
			}
		})
	}
}
