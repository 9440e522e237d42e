// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const csvFile = "manifests/gadget.clusterserviceversion.yaml"

// change replaces a text in a file of a bundle; an empty old text appends.
type change struct{ file, old, now string }

// bundleWith copies a bundle of testdata into memory and changes it.
func bundleWith(t testing.TB, name string, changes ...change) fstest.MapFS {
	t.Helper()
	root := filepath.Join("..", "testdata", "bundles", name)
	files := fstest.MapFS{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		relative, _ := filepath.Rel(root, path)
		files[filepath.ToSlash(relative)] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if files[c.file] == nil {
			files[c.file] = &fstest.MapFile{Mode: 0o644}
		}
		text := string(files[c.file].Data)
		if c.old != "" && !strings.Contains(text, c.old) {
			t.Fatalf("%s does not contain %q", c.file, c.old)
		}
		if c.old == "" {
			text += c.now
		} else {
			text = strings.ReplaceAll(text, c.old, c.now)
		}
		files[c.file].Data = []byte(text)
	}
	return files
}

func testOptions() Options {
	return Options{InstallNamespace: "tools", CertificateProvider: CertManager}
}

func problemsOf(t testing.TB, err error) []manifest.Problem {
	t.Helper()
	var refused *manifest.Error
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("an error of the wrong type: %v", err)
	}
	if refused == nil {
		return nil
	}
	return refused.Problems
}

// TestTable pins what defines the format: each generator once, in this order.
func TestTable(t *testing.T) {
	var families []string
	for _, g := range generators {
		families = append(families, g.family)
	}
	want := []string{"service accounts", "permissions", "cluster permissions", "API cluster roles", "custom resource definitions", "other objects",
		"deployments", "validating webhooks", "mutating webhooks", "webhook services", "certificates"}
	if diff := cmp.Diff(want, families); diff != "" {
		t.Errorf("generators (-want +got):\n%s", diff)
	}
}

const conversionHook = `
  - type: ConversionWebhook
    generateName: convert.gadgets.tools.example.org
    deploymentName: gadget-manager
    admissionReviewVersions: [v1]
    sideEffects: None
    conversionCRDs: [gadgets.tools.example.org]
`

// TestM21Refused breaks a bundle in every way that a rule names; every problem names its file and rule.
func TestM21Refused(t *testing.T) {
	csv := func(old, now string) change { return change{csvFile, old, now} }
	for name, c := range map[string]struct {
		reason  string
		changes []change
		adjust  func(*Options)
		want    []string // "rule file: part of the message", sorted as problems are
	}{
		"no annotations": {"P2: the tree is no bundle", []change{{"metadata/annotations.yaml", "annotations", "]["}}, nil,
			[]string{"P2 metadata/annotations.yaml: cannot be read"}},
		"package is no text": {"P3", []change{{"metadata/annotations.yaml", "package.v1: gadget", "package.v1: 7"}}, nil,
			[]string{"P3 metadata/annotations.yaml: not a string"}},
		"folder": {"P5", []change{{"manifests/sub/x.yaml", "", "kind: X"}}, nil, []string{"P5 manifests/sub: folders"}},
		"no version": {"P6: no obvious group", []change{{"manifests/x.yaml", "", "kind: Ingress\nmetadata: {name: x}"}}, nil,
			[]string{"identity manifests/x.yaml: no apiVersion"}},
		"no kind": {"P6", []change{{"manifests/x.yaml", "", "foo: bar"}}, nil,
			[]string{"identity manifests/x.yaml: no apiVersion", "identity manifests/x.yaml: no kind", "identity manifests/x.yaml: no metadata.name"}},
		"generated name": {"an object needs a name", []change{{"manifests/x.yaml", "", "apiVersion: v1\nkind: Secret\nmetadata: {generateName: x-}"}}, nil,
			[]string{"identity manifests/x.yaml: generateName"}},
		"no CSV": {"P8", []change{csv("kind: ClusterServiceVersion", "kind: ConfigMap")}, nil, []string{"P8 manifests: no ClusterServiceVersion"}},
		"two CSVs": {"P8: which one is meant", []change{{"manifests/zz.yaml", "", "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: other}"}}, nil,
			[]string{"P8 manifests/zz.yaml: another ClusterServiceVersion"}},
		"wrong types": {"P9: all at once, with their paths", []change{csv("replicas: 1", "replicas: one"), csv("displayName: Gadget Operator", "displayName: {a: b}")}, nil,
			[]string{"P9 " + csvFile + ": spec.displayName is a mapping, not a string", "P9 " + csvFile + ": spec.install.spec.deployments[0].spec.replicas is a string, not a whole number"}},
		"wrong quantity": {"P9: types that read themselves", []change{csv("memory: 128Mi", "memory: much")}, nil,
			[]string{"P9 " + csvFile + ": resources.limits.memory is a string, not a valid Quantity"}},
		"wrong type in a CRD": {"P10", []change{{"manifests/gadgets.crd.yaml", "served: true", "served: sure"}}, nil,
			[]string{"P10 manifests/gadgets.crd.yaml: spec.versions[0].served is a string, not true or false"}},
		"CRD of another group": {"P10", []change{{"manifests/gadgets.crd.yaml", "apiextensions.k8s.io/v1", "example.org/v1"}}, nil,
			[]string{"P10 manifests/gadgets.crd.yaml: not one of a CustomResourceDefinition"}},
		"bad properties": {"P12", []change{{"metadata/properties.yaml", "properties:", "properties: text #"}}, nil, []string{"P12 metadata/properties.yaml: list of properties"}},
		"bad property annotation": {"P12", []change{csv(`'[{"type": "gadget.flavour", "value": {"sweet": true}}]'`, "nonsense")}, nil,
			[]string{"P12 " + csvFile + ": not a JSON list"}},
		"API service": {"C1", []change{csv("customresourcedefinitions:", "apiservicedefinitions: {owned: [{name: x, group: g.example.org, version: v1, kind: X}]}\n  customresourcedefinitions:")}, nil,
			[]string{"C1 " + csvFile + ": v1.g.example.org"}},
		"no provider":         {"C2", nil, func(o *Options) { o.CertificateProvider = "" }, []string{"C2 " + csvFile + ": no certificate provider"}},
		"unknown provider":    {"C2", nil, func(o *Options) { o.CertificateProvider = "magic" }, []string{"C2 : does not exist"}},
		"unknown annotations": {"an option that does not exist", nil, func(o *Options) { o.PodAnnotations = "Some" }, []string{"D3 : does not exist"}},
		"no install mode":     {"C4", []change{csv("supported: true", "supported: false")}, nil, []string{"C4 " + csvFile + ": no install mode"}},
		"twin deployments":    {"V1", []change{csv("name: gadget-exporter\n        spec", "name: gadget-manager\n        spec")}, nil, []string{"V1 " + csvFile + `: named "gadget-manager"`}},
		"deployment name":     {"V2", []change{csv("name: gadget-exporter\n        spec", "name: Gadget_Exporter\n        spec")}, nil, []string{"V2 " + csvFile + `: "Gadget_Exporter"`}},
		"twin CRDs": {"V3: also when equal", []change{{"manifests/zz.yaml", "", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.tools.example.org}"}}, nil,
			[]string{"V3 manifests/zz.yaml: already in manifests/gadgets.crd.yaml"}},
		"missing CRD":    {"V4", []change{csv("{name: gadgets.tools.example.org, version", "{name: lost.tools.example.org, version")}, nil, []string{"V4 " + csvFile + `: "lost.tools.example.org"`}},
		"no package":     {"V5", []change{{"metadata/annotations.yaml", "package.v1", "pakcage.v1"}}, nil, []string{"V5 metadata/annotations.yaml: package"}},
		"odd package":    {"V5: it becomes a part of the status", []change{{"metadata/annotations.yaml", "package.v1: gadget", "package.v1: \"a\\nb\""}}, nil, []string{"V5 metadata/annotations.yaml: cannot be the name"}},
		"long package":   {"V5: it becomes a part of the status", []change{{"metadata/annotations.yaml", "package.v1: gadget", "package.v1: " + strings.Repeat("a", 254)}}, nil, []string{"V5 metadata/annotations.yaml: of 254 bytes"}},
		"conversion":     {"V6: conversion is cluster-wide", []change{csv("", conversionHook)}, nil, []string{"V6 " + csvFile + ": AllNamespaces and no other"}},
		"no deployment":  {"V7", []change{csv("generateName: fill.gadgets.tools.example.org\n    deploymentName: gadget-manager", "generateName: fill.gadgets.tools.example.org\n    deploymentName: missing")}, nil, []string{"V7 " + csvFile + `: "missing"`}},
		"twin webhooks":  {"V8", []change{csv("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"), csv("fill.gadgets", "check.gadgets")}, nil, []string{"V8 " + csvFile + ": two webhooks"}},
		"webhook name":   {"V9: a trailing dash", []change{csv("fill.gadgets.tools.example.org", "fill-")}, nil, []string{"V9 " + csvFile + `: "fill-"`}},
		"webhook type":   {"W3: it would vanish silently", []change{csv("MutatingAdmissionWebhook", "Hook")}, nil, []string{"W3 " + csvFile + `: "Hook"`}},
		"webhook port":   {"W2: no port", []change{csv("containerPort: 443", "containerPort: 70000")}, nil, []string{"W2 " + csvFile + ": out of range"}},
		"two converters": {"V10 and V6", []change{csv("", conversionHook+strings.ReplaceAll(conversionHook, "convert.", "again."))}, nil, []string{"V10 " + csvFile + ": again.gadgets.tools.example.org, convert.gadgets.tools.example.org", "V6 " + csvFile + ": again", "V6 " + csvFile + ": convert"}},
		"not owned":      {"V11", []change{csv("", strings.ReplaceAll(conversionHook, "[gadgets", "[widgets"))}, nil, []string{"V11 " + csvFile + ": widgets.tools.example.org", "V6 " + csvFile + ": convert"}},
		"all groups":     {"V12", []change{csv("apiGroups: [tools.example.org]\n      apiVersions: [v1]\n      operations: [CREATE]", "apiGroups: ['*']\n      apiVersions: [v1]\n      operations: [CREATE]")}, nil, []string{"V12 " + csvFile + `: the API group "*"`}},
		"our own group":  {"V12: a webhook could keep Satchel from removing it", []change{csv("apiGroups: [tools.example.org]\n      apiVersions: [v1]\n      operations: [CREATE]", "apiGroups: [satchel.dev]\n      apiVersions: [v1]\n      operations: [CREATE]")}, nil, []string{"V12 " + csvFile + `: the API group "satchel.dev"`}},
		"admission itself": {"V12: subresources do not slip through", []change{csv("apiGroups: [tools.example.org]\n      apiVersions: [v1]\n      operations: [CREATE]\n      resources: [gadgets]",
			"apiGroups: [admissionregistration.k8s.io]\n      apiVersions: [v1]\n      operations: [CREATE]\n      resources: ['*/*', MutatingWebhookConfigurations/status]")}, nil,
			[]string{"V12 " + csvFile + `: "*/*"`, "V12 " + csvFile + ": MutatingWebhookConfigurations/status"}},
		"other kinds": {"V13", []change{{"manifests/x.yaml", "", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}"}}, nil, []string{"V13 manifests/x.yaml: not allowed"}},
		"many": {"all problems at once", []change{{"manifests/x.yaml", "", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}"}, csv("fill.gadgets.tools.example.org", "fill-")}, func(o *Options) { o.WatchNamespaces = []string{"Not Valid"} },
			[]string{"N2 " + csvFile + ": not a valid name", "V9 " + csvFile + `: "fill-"`, "V13 manifests/x.yaml: not allowed"}},
		"contradicting objects": {"O4", []change{{"manifests/zz.yaml", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gadget-config}\ndata: {a: '2'}"}}, nil, []string{"O4 manifests/zz.yaml: differ in their contents"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions()
			if c.adjust != nil {
				c.adjust(&o)
			}
			_, err := Convert(bundleWith(t, "gadget", c.changes...), o, manifest.Limits{})
			problems := problemsOf(t, err)
			if len(problems) != len(c.want) {
				t.Fatalf("%s: %d problems instead of %d:\n%v", c.reason, len(problems), len(c.want), err)
			}
			for i, want := range c.want {
				head, part, _ := strings.Cut(want, ": ")
				if got := problems[i].Rule + " " + problems[i].File; got != head || !strings.Contains(problems[i].Message, part) {
					t.Errorf("%s: want %s\ngot %s", c.reason, want, problems[i])
				}
			}
		})
	}
}

// TestV14PreservedFields: a CRD that keeps unknown fields cannot be converted by a webhook.
func TestV14PreservedFields(t *testing.T) {
	files := bundleWith(t, "converter", change{"manifests/shapes.yaml", "preserveUnknownFields: false", "preserveUnknownFields: true"})
	_, err := Convert(files, testOptions(), manifest.Limits{})
	problems := problemsOf(t, err)
	if len(problems) != 1 || problems[0].Rule != "V14" || problems[0].File != "manifests/shapes.yaml" {
		t.Errorf("got %v", err)
	}
}

// TestP2MissingFolders: a tree without its two folders says so.
func TestP2MissingFolders(t *testing.T) {
	_, err := Convert(fstest.MapFS{}, testOptions(), manifest.Limits{})
	var rules []string
	for _, p := range problemsOf(t, err) {
		rules = append(rules, p.Rule)
	}
	if diff := cmp.Diff([]string{"P1", "P2"}, rules); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
