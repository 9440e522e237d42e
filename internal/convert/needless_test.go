// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// deepCRD is a CRD of many fields, each so many levels deep in its schema, with as much indentation.
func deepCRD(fields, levels int) string {
	var b strings.Builder
	b.WriteString(noMeta + "spec:\n  group: example.org\n  scope: Namespaced\n  names: {kind: A, plural: as}\n  versions:\n" +
		"  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n")
	margin := "        "
	for level := range levels {
		fmt.Fprintf(&b, "%sproperties:\n%s  level%d:\n%s    type: object\n", margin, margin, level, margin)
		margin += "    "
	}
	b.WriteString(margin + "properties:\n")
	for i := range fields {
		fmt.Fprintf(&b, "%s  field%d:\n%s    description: >-\n%s      One of the many fields that the template of a\n%s      Pod brings with it.\n%s    type: string\n", margin, i, margin, margin, margin, margin)
	}
	return b.String()
}

// needless are bundles as they are published, or nearly so. OLM v1 installs them.
var needless = map[string]struct {
	reason   string
	files    fstest.MapFS
	adjust   func(*registryv1.Options)
	warnings []string // parts of them
	refused  string   // a part of the problem, of neighbours that stay refused
}{
	"large text": {reason: "StackGres: a CRD of 4 MiB, most of it indentation", files: hostileBundle(csv, deepCRD(10_000, 20))},
	"several large texts": {reason: "together within the limit of all",
		files: tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", csv, "manifests/a.yaml", deepCRD(8_000, 12), "manifests/b.yaml", strings.ReplaceAll(deepCRD(8_000, 12), "as.example.org", "bs.example.org"))},
	"many CRDs in a file": {reason: "no single one is large", files: hostileBundle(csv, func() string {
		var all []string
		for i := range 5 {
			all = append(all, strings.ReplaceAll(deepCRD(3_000, 15), "as.example.org", fmt.Sprintf("as%d.example.org", i)))
		}
		return strings.Join(all, "---\n")
	}())},
	"large object":     {reason: "etcd takes no such request", files: hostileBundle(csv, deepCRD(20_000, 1)), refused: "and may have 1572864"},
	"v1beta1 grows":    {reason: "its schema is written into each version", refused: "and may have 1572864", files: hostileBundle(csv, growing())},
	"endless text":     {reason: "a text has a limit too", files: hostileBundle(csv, "#"+strings.Repeat(" ", 9<<20)), refused: "--limit-manifest-bytes"},
	"CSV namespace":    {reason: "a template's placeholder", files: hostileBundle(strings.Replace(csv, "{name: op.v1}", "{name: op.v1, namespace: '{{ .Namespace }}'}", 1), ""), warnings: []string{"the metadata.namespace of ClusterServiceVersion op.v1 is not a valid name"}},
	"CSV namespace 2":  {reason: "capital letters", files: hostileBundle(strings.Replace(csv, "{name: op.v1}", "{name: op.v1, namespace: PLACEHOLDER}", 1), ""), warnings: []string{"metadata.namespace"}},
	"CSV namespace 3":  {reason: "a number is no name either", files: hostileBundle(strings.Replace(csv, "{name: op.v1}", "{name: op.v1, namespace: 12}", 1), ""), warnings: []string{"metadata.namespace"}},
	"CSV namespace 4":  {reason: "a valid one is nothing to warn of", files: hostileBundle(strings.Replace(csv, "{name: op.v1}", "{name: op.v1, namespace: placeholder}", 1), "")},
	"object namespace": {reason: "it is replaced by the install namespace", files: hostileBundle(csv, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: $(NAMESPACE)}\n"), warnings: []string{"manifests/other.yaml: the metadata.namespace of ConfigMap c"}},
	"CRD namespace":    {reason: "it has none", files: hostileBundle(csv, strings.Replace(fmt.Sprintf(aCRD, ""), "{name: as.example.org}", "{name: as.example.org, namespace: <ns>}", 1)), warnings: []string{"CustomResourceDefinition as.example.org"}},
	"equal keys":       {reason: "an author's oversight", files: hostileBundle(csv+"  description: a\n  description: a\n", ""), warnings: []string{`manifests/csv.yaml: line 7: the key "description" appears twice`}},
	"equal key CRD":    {reason: "generated twice", files: hostileBundle(csv, fmt.Sprintf(aCRD, "a: {type: string}, a: {type: string}")), warnings: []string{`manifests/other.yaml: line 9: the key "a" appears twice`}},
	"equal key JSON":   {reason: "in JSON too", files: tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", csv, "manifests/c.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"b","a":"b"}}`), warnings: []string{`manifests/c.json: line 1: the key "a" appears twice`}},
	"differing keys":   {reason: "which one is meant", files: hostileBundle(csv+"  description: a\n  description: b\n", ""), refused: `line 7: the key "description" appears twice in one mapping, with different values; the first is in line 6`},
	"annotations": {reason: "channels that nothing depends on", files: tree("metadata/annotations.yaml", "annotations:\n  a: 1\n  operators.operatorframework.io.bundle.package.v1: op\n  a: 2\n", "manifests/csv.yaml", csv),
		warnings: []string{`metadata/annotations.yaml: line 4: the key "a" appears twice in one mapping, with different values; the first is in line 2; the last one counts`}},
	"two packages": {reason: "which one is meant", files: tree("metadata/annotations.yaml", "annotations:\n  operators.operatorframework.io.bundle.package.v1: a\n  operators.operatorframework.io.bundle.package.v1: b\n", "manifests/csv.yaml", csv),
		refused: "line 3: the bundle names two packages; the first is in line 2"},
	"properties": {reason: "as OLM reads them", files: tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", csv, "metadata/properties.yaml", "properties:\n- type: a\n  value: 1\n  value: 1\n"),
		warnings: []string{`metadata/properties.yaml: line 4: the key "value" appears twice`}},
	"dependencies": {reason: "what is not enforced is not judged", files: dependent("dependencies: none\n"), adjust: optional,
		warnings: []string{"metadata/dependencies.yaml: this is not a list of dependencies, each with type and value; it is ignored, as by OLM v1"}},
	"dependencies 2": {reason: "no YAML at all", files: dependent("{"), adjust: optional, warnings: []string{"metadata/dependencies.yaml: this is not a list"}},
	"dependencies 3": {reason: "a part that makes no sense", files: dependent("dependencies: [{type: olm.package, value: {packageName: a, version: newest}}]\n"), adjust: optional, warnings: []string{"no range of versions"}},
	"dependencies 4": {reason: "keys that contradict", files: dependent("dependencies:\n- type: olm.package\n  value: {packageName: a}\n  value: {packageName: b}\n"), adjust: optional, warnings: []string{"metadata/dependencies.yaml: line 4: "}},
	"dependencies 5": {reason: "longer than any", files: dependent(strings.Repeat("#", 300<<10)), adjust: optional, warnings: []string{"metadata/dependencies.yaml: the file is larger"}},
	"equal in dependencies": {reason: "also while they are enforced", files: dependent("dependencies:\n- type: olm.package\n  value: {packageName: a, version: '>1.0.0'}\n  value: {packageName: a, version: '>1.0.0'}\n"),
		warnings: []string{`metadata/dependencies.yaml: line 4: the key "value" appears twice`}},
	"enforced":   {reason: "OLM v1 ignores the file", files: dependent("dependencies: none\n"), warnings: []string{"metadata/dependencies.yaml: this is not a list of dependencies"}},
	"enforced 2": {reason: "the list alone", files: dependent("- {type: olm.package, value: {packageName: a}}\n"), warnings: []string{"metadata/dependencies.yaml: this is not a list of dependencies"}},
	"enforced 3": {reason: "OLM's catalogs refuse them too", files: dependent("dependencies: [{type: olm.package, value: {packageName: a, version: newest}}]\n"), refused: "is no range of versions of package"},
	"labels": {reason: "others read them, and one of them wins everywhere", files: hostileBundle(csv, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  labels: {a: b, a: c}\n  annotations:\n    x: a\n    x: b\n"),
		warnings: []string{`manifests/other.yaml: line 5: the key "a" appears twice in one mapping, with different values; the first is in line 5; the last one counts`, `line 8: the key "x"`}},
	"labels JSON": {reason: "in JSON too", files: tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", csv, "manifests/c.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"a":"b","a":"c"}}}`),
		warnings: []string{`manifests/c.json: line 1: the key "a" appears twice in one mapping, with different values`}},
	"labels of another": {reason: "a field that is called so", files: hostileBundle(csv, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {labels: a, labels: b}\n"), refused: `the key "labels" appears twice in one mapping, with different values`},
	"in metadata":       {reason: "which name is meant", files: hostileBundle(csv, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, name: d}\n"), refused: `keep one of them, or set registryV1.duplicateKeys to Last, which takes the last one as OLM does`},
	"last keys": {reason: "as OLM reads them", files: hostileBundle(csv+"  description: a\n  description: b\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, name: d}\n"), adjust: lastKeys,
		warnings: []string{`line 7: the key "description" appears twice in one mapping, with different values; the first is in line 6; the last one counts`, `the key "name" appears twice`}},
	"last keys JSON": {reason: "in JSON too", files: tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", csv, "manifests/c.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"b","a":"c"}}`), adjust: lastKeys,
		warnings: []string{`manifests/c.json: line 1: the key "a" appears twice in one mapping, with different values`}},
	"contradicted": {reason: "which one is meant", files: dependent("dependencies:\n- type: olm.package\n  value: {packageName: a}\n  value: {packageName: b}\n"), refused: "with different values; the first is in line 3"},
	"media type":   {reason: "OLM does not look at it", files: tree("metadata/annotations.yaml", mediaType("plain"), "manifests/csv.yaml", csv)},
}

func optional(o *registryv1.Options) { o.RequirementsOptional = true }

func lastKeys(o *registryv1.Options) { o.LastKeys = true }

func dependent(dependencies string) fstest.MapFS {
	return tree("metadata/annotations.yaml", annotations, "manifests/csv.yaml", csv, "metadata/dependencies.yaml", dependencies)
}

// growing is a CRD in v1beta1 with one schema for several versions.
func growing() string {
	text := strings.ReplaceAll(deepCRD(6_000, 1), "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
	before, after, _ := strings.Cut(text, "  versions:\n")
	_, schema, _ := strings.Cut(after, "    schema:\n")
	versions := ""
	for i := range 9 {
		versions += fmt.Sprintf("  - {name: v%d, served: true, storage: %v}\n", i+1, i == 0)
	}
	return before + "  versions:\n" + versions + "  validation:\n" + schema
}

// TestNotRefusedWithoutNeed: what keeps no object from being installed is a warning that says where it is; what would install
// something else than its author meant, or cannot be installed at all, stays refused.
func TestNotRefusedWithoutNeed(t *testing.T) {
	rendered := 0
	for name, c := range needless {
		t.Run(name, func(t *testing.T) {
			o := registryv1.Options{}
			if c.adjust != nil {
				c.adjust(&o)
			}
			result, err := convert.Convert(c.files, withV1(o))
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %v", c.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			rendered++
			if len(result.Warnings) != len(c.warnings) {
				t.Fatalf("%s: warnings %q", c.reason, result.Warnings)
			}
			for i, part := range c.warnings {
				if !strings.Contains(result.Warnings[i], part) {
					t.Errorf("%s: the warning is %q, not %q", c.reason, result.Warnings[i], part)
				}
			}
		})
	}
	t.Logf("%d of %d are rendered", rendered, len(needless))
}

// TestWarningsOfOtherFormats: keys that appear twice are warned of where they are accepted, and refused where the format's own
// library refuses them.
func TestWarningsOfOtherFormats(t *testing.T) {
	const twice = configMap + "data: {a: b}\ndata: {a: b}\n"
	const says = `line 5: the key "data" appears twice in one mapping, with equal values; the first is in line 4`
	for name, c := range map[string]struct {
		files         fstest.MapFS
		warn, refused string
	}{
		"plain":     {tree("a.yaml", twice), "a.yaml: " + says, ""},
		"chart":     {tree("Chart.yaml", chartYAML, "templates/a.yaml", configMap+"---\n"+strings.ReplaceAll(twice, "{name: a}", "{name: b}")), "templates/a.yaml: document 2: " + says, ""},
		"CRD":       {tree("Chart.yaml", chartYAML, "crds/a.yaml", widgets+"spec: {}\n"), "", `line 9: the key "spec" appears twice`},
		"kustomize": {tree("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", twice), "", says},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := convert.Convert(c.files, convert.Options{InstallNamespace: "ns"})
			switch {
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("got %v", err)
			case c.refused == "" && (err != nil || len(result.Warnings) != 1 || result.Warnings[0] != c.warn):
				t.Errorf("warnings %q, error %v", result.Warnings, err)
			}
		})
	}
}
