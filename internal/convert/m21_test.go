// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

const (
	permissive = "      clusterPermissions: [{serviceAccountName: all, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}]\n"
	noMeta     = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.org}\n"
	aCRD       = noMeta + "spec:\n  group: example.org\n  scope: Namespaced\n  names: {kind: A, plural: as}\n  versions:\n" +
		"  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {%s}}}}}\n"
	foreign = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: kube-system, name: theirs}}}}\n"
	job     = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"
)

// hostileBundle is a bundle with one manifest besides its CSV.
func hostileBundle(csv, other string) fstest.MapFS {
	return tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", csv, "manifests/other.yaml", other)
}

func converter(crd string) string {
	return "  - {type: ConversionWebhook, generateName: c.example.org, deploymentName: d, admissionReviewVersions: [v1], sideEffects: None, conversionCRDs: [" + crd + "]}\n"
}

// owning is a CSV that owns a CRD.
func owning(csv, crd string) string {
	return csv + "  customresourcedefinitions: {owned: [{name: " + crd + ", kind: A, version: v1}]}\n"
}

// TestM21Hostile: each fault of a bundle becomes a problem of the one error, which names the rule and what is at fault; what
// is merely strange is rendered.
func TestM21Hostile(t *testing.T) {
	d, hook := deploymentNamed("d"), hookNamed("h.example.org", "d")
	long := strings.Repeat("l", 254)
	with := func(files fstest.MapFS, pairs ...string) fstest.MapFS {
		for name, file := range tree(pairs...) {
			files[name] = file
		}
		return files
	}
	for name, c := range map[string]struct {
		reason string
		files  fstest.MapFS
		want   []string // "rule: part of the problem", in the order of the error; none: it renders
	}{
		"no CSV":              {"nothing describes the operator", hostileBundle(configMap, ""), []string{"P8: no ClusterServiceVersion"}},
		"two CSVs":            {"which one is meant", hostileBundle(csv, csv), []string{"P8: another ClusterServiceVersion"}},
		"three CSVs":          {"each further one is a problem", hostileBundle(csv, csv+"---\n"+csv), []string{"P8: (document 1)", "P8: (document 2)"}},
		"two packages":        {"a key that is there twice", with(hostileBundle(csv, ""), "metadata/annotations.yaml", "annotations:\n  operators.operatorframework.io.bundle.package.v1: a\n  operators.operatorframework.io.bundle.package.v1: b\n"), []string{"P3: two packages"}},
		"the same package":    {"said twice is no contradiction", with(hostileBundle(csv, ""), "metadata/annotations.yaml", "annotations:\n  operators.operatorframework.io.bundle.package.v1: a\n  operators.operatorframework.io.bundle.package.v1: a\n"), nil},
		"no annotations":      {"the file is missing", tree("manifests/csv.yaml", csv), []string{"P2: does not exist"}},
		"no containers":       {"no API server takes it", hostileBundle(bundleOf(strings.ReplaceAll(d, "[{name: c, image: example.org/c:1}]", "[]"), hook), ""), []string{`D1: "d" has no containers`}},
		"all permissions":     {"RBAC decides about the permissions of a bundle", hostileBundle(bundleOf(d, hook), ""), nil},
		"names of 63":         {"the longest label", hostileBundle(bundleOf(deploymentNamed(long[:63]), hookNamed("h.example.org", long[:63])), ""), nil},
		"names of 253":        {"the longest name", hostileBundle(bundleOf(deploymentNamed(long[:253]), hookNamed("h.example.org", long[:253])), ""), nil},
		"names of 254":        {"all of them are listed", hostileBundle(bundleOf(deploymentNamed(long), hookNamed(long, long)), ""), []string{"V2: no more than 253", "V9: no more than 253"}},
		"name of an object":   {"also beside the CSV", hostileBundle(csv, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+long+"}\n"), []string{"identity: longer than 253"}},
		"name of an account":  {"also inside it", hostileBundle(strings.Replace(bundleOf(d, hook), "serviceAccountName: all", "serviceAccountName: Not_Valid", 1), ""), []string{`S1: "Not_Valid"`}},
		"colliding names":     {"a dot and a dash make the same Service of two deployments", hostileBundle(bundleOf(deploymentNamed("a.b")+strings.ReplaceAll(deploymentNamed("a-b"), "app: a", "app: b"), hookNamed("h.example.org", "a.b")+hookNamed("i.example.org", "a-b")), ""), []string{"O4: Service a-b-service"}},
		"twin webhooks":       {"they would be one object", hostileBundle(bundleOf(d, hook+hook), ""), []string{"V8: two webhooks"}},
		"foreign webhook":     {"a webhook of a foreign deployment", hostileBundle(bundleOf(d, hookNamed("h.example.org", "theirs")), ""), []string{`V7: "theirs"`}},
		"foreign conversion":  {"passed on as OLM does, with a warning", hostileBundle(bundleOf(d, hook), fmt.Sprintf(aCRD, "")+foreign), nil},
		"wrong conversion":    {"a CRD that the bundle lacks", hostileBundle(bundleOf(d, converter("bs.example.org")), fmt.Sprintf(aCRD, "")), []string{`V11: "bs.example.org"`}},
		"lost conversion":     {"and one that it owns but lacks", hostileBundle(owning(bundleOf(d, converter("bs.example.org")), "bs.example.org"), fmt.Sprintf(aCRD, "")), []string{`V4: "bs.example.org"`}},
		"conversion of all":   {"not one of a name", hostileBundle(bundleOf(d, converter("'*'")), fmt.Sprintf(aCRD, "")), []string{`V11: "*"`}},
		"reference to a file": {"nothing is read through a schema", hostileBundle(csv, fmt.Sprintf(aCRD, "$ref: 'file:///etc/passwd'")), []string{"P10: spec.versions[0].schema.openAPIV3Schema.properties.spec.$ref"}},
		"reference to a host": {"nor asked for", hostileBundle(csv, fmt.Sprintf(aCRD, "allOf: [{$ref: 'http://127.0.0.1:1/x'}]")), []string{"P10: properties.spec.allOf[0].$ref"}},
		"reference in a file": {"nor found elsewhere in it", hostileBundle(csv, fmt.Sprintf(aCRD, "additionalProperties: {$ref: '#/definitions/x'}")), []string{"P10: properties.spec.additionalProperties.$ref"}},
		"a field named $ref":  {"is only a name", hostileBundle(csv, fmt.Sprintf(aCRD, "properties: {$ref: {type: string}}")), nil},
		"unknown kind":        {"it may be dangerous", hostileBundle(csv, "apiVersion: a.example.org/v1\nkind: Thing\nmetadata: {name: t}\n"), []string{"V13: Thing t"}},
		"unsupported kind":    {"Kubernetes knows it", hostileBundle(csv, job), []string{"V13: Job j"}},
		"no kind":             {"it is no object", hostileBundle(csv, "a: b\n"), []string{"identity: apiVersion", "identity: kind", "identity: metadata.name"}},
		"garbage properties":  {"they would be copied to every Pod", with(hostileBundle(csv, ""), "metadata/properties.yaml", "\x00\x01{"), []string{"P12: not a list of properties"}},
		"text as properties":  {"or something else", with(hostileBundle(csv, ""), "metadata/properties.yaml", "properties: {a: b}"), []string{"P12: not a list of properties"}},
		"endless properties":  {"or too many", with(hostileBundle(csv, ""), "metadata/properties.yaml", strings.Repeat("#", 300<<10)), []string{"P12: larger than"}},
		"all at once": {
			"one error for whatever can be found",
			with(hostileBundle(bundleOf(d+d+deploymentNamed("Bad_Name"), hook+hook+hookNamed("bad_name", "theirs")+converter("bs.example.org")), job+"---\na: b\n---\nb: [\n"),
				"metadata/properties.yaml", "properties: 7", "metadata/annotations.yaml", "annotations: {}", "manifests/sub/x.yaml", job),
			[]string{
				`V1: "d"`, `V11: "bs.example.org"`, `V2: "Bad_Name"`, `V7: "theirs"`, "V8: two webhooks", `V9: "bad_name"`,
				"V13: Job j", "identity: apiVersion", "identity: kind", "identity: metadata.name", "syntax: (document 3)",
				"P5: manifests/sub", "V5: package", "P12: not a list",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := withV1(registryv1.Options{})
			o.Format = convert.RegistryV1
			_, err := convert.Convert(c.files, o)
			var refused *convert.Error
			if err != nil && !errors.As(err, &refused) {
				t.Fatalf("%s: an error of the wrong type: %v", c.reason, err)
			}
			if refused == nil {
				refused = &convert.Error{}
			}
			if len(refused.Problems) != len(c.want) {
				t.Fatalf("%s: %d problems, want %d:\n%v", c.reason, len(refused.Problems), len(c.want), err)
			}
			for i, p := range refused.Problems {
				rule, part, _ := strings.Cut(c.want[i], ": ")
				if p.Rule != rule || !strings.Contains(p.String(), part) || p.Remedy == "" && p.Rule != "P2" && p.Rule != "syntax" {
					t.Errorf("%s: want %s\ngot %s", c.reason, c.want[i], p)
				}
			}
		})
	}
}
