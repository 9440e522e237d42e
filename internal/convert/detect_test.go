// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

func tree(pairs ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o644}
	}
	return files
}

const (
	configMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	csv         = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: op.v1}\nspec:\n  installModes: [{type: AllNamespaces, supported: true}]\n"
	annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: op}\n"
)

const (
	chartYAML     = "apiVersion: v2\nname: x\nversion: 1.0.0\n"
	chartTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
)

func mediaType(name string) string {
	return "annotations: {operators.operatorframework.io.bundle.package.v1: op, operators.operatorframework.io.bundle.mediatype.v1: " + name + "}\n"
}

// TestDetect is the decision table of formats; a refusal says what to do.
func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		files  fstest.MapFS
		format convert.Format // asked for
		want   convert.Format
		refuse string
	}{
		"plain":                {"manifests alone", tree("a.yaml", configMap), "", convert.PlainV0, ""},
		"plain folder":         {"in their folder", tree("manifests/a.yaml", configMap), "", convert.PlainV0, ""},
		"plain JSON":           {"JSON counts", tree("x/a.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`), "", convert.PlainV0, ""},
		"registry":             {"both folders", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", annotations), "", convert.RegistryV1, ""},
		"registry declared":    {"and the media type", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", mediaType("registry+v1")), "", convert.RegistryV1, ""},
		"declared plain":       {"RukPak's plain bundles", tree("manifests/a.yaml", configMap, "metadata/annotations.yaml", mediaType("plain+v0")), "", convert.PlainV0, ""},
		"plain with CSV":       {"OLM ignores the media type", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", mediaType("plain+v0")), "", convert.RegistryV1, ""},
		"odd with CSV":         {"whatever it is", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", mediaType("plain")), "", convert.RegistryV1, ""},
		"declared helm":        {"a type that is not supported", tree("manifests/a.yaml", configMap, "metadata/annotations.yaml", mediaType("helm")), "", "", `the media type "helm"`},
		"broken annotations":   {"the format is unknown", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", "]["), "", "", "cannot be read"},
		"no manifests":         {"the converter says what is missing", tree("metadata/annotations.yaml", mediaType("registry+v1")), "", "", "manifests"},
		"no annotations":       {"applying a CSV would install nothing", tree("manifests/a.yaml", csv), "", "", "spec.format"},
		"no annotations JSON":  {"also in JSON", tree("manifests/a.json", `{"kind": "ClusterServiceVersion"}`), "", "", "spec.format"},
		"mentioned only":       {"a mention is not a CSV", tree("manifests/a.yaml", configMap+"data: {a: ClusterServiceVersion}"), "", convert.PlainV0, ""},
		"chosen":               {"a choice overrides", tree("manifests/a.yaml", csv), convert.PlainV0, convert.PlainV0, ""},
		"helm":                 {"charts are recognised", tree("Chart.yaml", chartYAML, "templates/a.yaml", chartTemplate), "", convert.Helm, ""},
		"helm further down":    {"a chart that the path does not point at", tree("a.yaml", configMap, "deploy/Chart.yaml", "name: x"), "", "", `the bundle is not at the root of the files, but in the folder deploy (helm); set spec.path to "deploy", or spec.format to "plain+v0" to apply all manifests as they are`},
		"marks beside":         {"a mark at the root decides", tree("kustomization.yaml", "resources: [a.yaml]", "a.yaml", configMap, "b/Chart.yaml", ""), "", convert.Kustomize, ""},
		"helm beside":          {"manifests/ is all that is read of plain bundles", tree("manifests/a.yaml", configMap, "deploy/Chart.yaml", "name: x"), "", convert.PlainV0, ""},
		"two packages":         {"one has to be named", tree("a-1.tgz", "", "b-1.tgz", ""), "", "", "no manifests"},
		"no chart":             {"chosen where there is none", tree("a.yaml", configMap), convert.Helm, "", "the folder has no Chart.yaml"},
		"kustomize":            {"kustomizations are recognised", tree("kustomization.yaml", "resources: [a.yaml]", "a.yaml", configMap), "", convert.Kustomize, ""},
		"kustomize, other":     {"under all three names", tree("Kustomization", "resources: [a.yaml]", "a.yaml", configMap), "", convert.Kustomize, ""},
		"kustomize and helm":   {"one of them has to be chosen", tree("kustomization.yaml", "resources: [a.yaml]", "a.yaml", configMap, "Chart.yaml", "name: x"), "", "", `more than one format matches: helm (Chart.yaml) and kustomize (kustomization.yaml); set spec.format to "helm" or "kustomize"`},
		"registry and helm":    {"annotations and a chart", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", annotations, "Chart.yaml", "name: x"), "", "", `registry+v1 (metadata/annotations.yaml) and helm (Chart.yaml); set spec.format to "registry+v1" or "helm"`},
		"registry, kustomize":  {"annotations and a kustomization", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", annotations, "kustomization.yml", ""), "", "", `registry+v1 (metadata/annotations.yaml) and kustomize (kustomization.yml)`},
		"plain, kustomize":     {"a declared type is a mark", tree("manifests/a.yaml", configMap, "metadata/annotations.yaml", mediaType("plain+v0"), "Kustomization", ""), "", "", `plain+v0 (metadata/annotations.yaml) and kustomize (Kustomization)`},
		"all three":            {"each is named", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", annotations, "Chart.yaml", "name: x", "kustomization.yaml", ""), "", "", `registry+v1 (metadata/annotations.yaml), helm (Chart.yaml) and kustomize (kustomization.yaml); set spec.format to "registry+v1", "helm" or "kustomize"`},
		"all three, chosen":    {"a choice ends the doubt", tree("manifests/a.yaml", csv, "metadata/annotations.yaml", annotations, "Chart.yaml", "name: x", "kustomization.yaml", ""), convert.RegistryV1, convert.RegistryV1, ""},
		"kustomize below":      {"a kustomization that the path does not point at", tree("README.md", "", "deploy/kustomization.yaml", "resources: [a.yaml]", "deploy/a.yaml", configMap), "", "", `but in the folder deploy (kustomize); set spec.path to "deploy"`},
		"several below":        {"all are named, those inside another one are not", tree("README.md", "", "z/Kustomization", "", "charts/app/Chart.yaml", "", "charts/app/charts/b/Chart.yaml", "", "z/base/kustomization.yml", "", "v1/metadata/annotations.yaml", annotations, "v1/manifests/a.yaml", csv), "", "", `these folders hold one: v1 (registry+v1), z (kustomize), charts/app (helm); set spec.path to one of "v1", "z", "charts/app"`},
		"many below":           {"not all are named", tree("a/Chart.yaml", "", "b/Chart.yaml", "", "c/Chart.yaml", "", "d/Chart.yaml", "", "e/Chart.yaml", "", "f/Chart.yaml", ""), "", "", `e (helm) and 1 more; set spec.path to one of "a", "b", "c", "d", "e"`},
		"hidden below":         {"plain+v0 does not read hidden folders either", tree("a.yaml", configMap, ".github/Chart.yaml", ""), "", convert.PlainV0, ""},
		"in manifests":         {"a kustomization in the folder of plain bundles", tree("README.md", "", "manifests/kustomization.yaml", "resources: [a.yaml]", "manifests/a.yaml", configMap), "", "", `set spec.path to "manifests"`},
		"of Flux":              {"an object that has its kind as name of the file", tree("apps/kustomization.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\n"), "", convert.PlainV0, ""},
		"plain+v0, below":      {"a choice overrides", tree("a.yaml", configMap, "b/Kustomization", ""), convert.PlainV0, convert.PlainV0, ""},
		"helm, below":          {"those of the chosen format are named", tree("README.md", "", "deploy/kustomization.yaml", "", "charts/app/Chart.yaml", ""), convert.Helm, "", `in the folder charts/app (helm); set spec.path to "charts/app" [`},
		"kustomize, below":     {"those of the chosen format are named", tree("README.md", "", "deploy/kustomization.yaml", "", "charts/app/Chart.yaml", ""), convert.Kustomize, "", `in the folder deploy (kustomize); set spec.path to "deploy" [`},
		"only folder, helm":    {"a chart as helm package writes it", tree("x/Chart.yaml", chartYAML, "x/templates/a.yaml", chartTemplate), "", convert.Helm, ""},
		"only folder, asked":   {"also where the format is given", tree("x/Chart.yaml", chartYAML, "x/templates/a.yaml", chartTemplate), convert.Helm, convert.Helm, ""},
		"only folder, bundle":  {"a bundle in a folder", tree("x/manifests/a.yaml", csv, "x/metadata/annotations.yaml", annotations), "", convert.RegistryV1, ""},
		"only folder, built":   {"with bases beside the kustomization", tree("x/kustomization.yaml", "resources: [base]", "x/base/kustomization.yaml", "resources: [a.yaml]", "x/base/a.yaml", configMap), "", convert.Kustomize, ""},
		"only folder, plain":   {"plain manifests have no mark", tree("x/a.yaml", configMap), "", convert.PlainV0, ""},
		"manifests, kustomize": {"a kustomization of what is in manifests/", tree("kustomization.yaml", "resources: [manifests/a.yaml]", "manifests/a.yaml", configMap), "", convert.Kustomize, ""},
		"metadata, manifests":  {"a folder of that name alone says nothing", tree("metadata/README.md", "x", "manifests/a.yaml", configMap), "", convert.PlainV0, ""},
		"annotations alone":    {"without manifests/ they decide nothing", tree("metadata/annotations.yaml", annotations, "kustomization.yaml", "resources: [a.yaml]", "a.yaml", configMap), "", convert.Kustomize, ""},
		"CSV, kustomize":       {"what is missing comes first", tree("manifests/a.yaml", csv, "kustomization.yaml", "resources: []"), "", "", "but this file is missing"},
		"helm chosen":          {"a choice overrides", tree("kustomization.yaml", "resources: [a.yaml]", "a.yaml", configMap, "Chart.yaml", "name: x"), convert.Kustomize, convert.Kustomize, ""},
		"no kustomization":     {"where there is none", tree("a.yaml", configMap), convert.Kustomize, "", "the folder has no kustomization.yaml"},
		"kustomize chosen":     {"the folder as plain manifests: its kustomization is none", tree("kustomization.yaml", "resources: []", "a.yaml", configMap), convert.PlainV0, "", "no apiVersion"},
		"empty":                {"nothing", tree("README.md", "x"), "", "", "no manifests"},
		"unknown format":       {"a format that does not exist", tree("a.yaml", configMap), "ksonnet", "", `the format "ksonnet"`},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := convert.Convert(c.files, convert.Options{Format: c.format, InstallNamespace: "ns"})
			if c.refuse == "" {
				if err != nil || result.Format != c.want {
					t.Errorf("%s: %q, %v", c.reason, result.Format, err)
				}
				return
			}
			var refused *convert.Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

// failing is a tree of which one file cannot be read.
type failing struct {
	fstest.MapFS
	name string
}

func (f failing) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("input/output error")}
	}
	return f.MapFS.Open(name)
}

func (f failing) Stat(name string) (fs.FileInfo, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: errors.New("input/output error")}
	}
	return f.MapFS.Stat(name)
}

// TestDetectOnAFailingDisk: what cannot be read must not change the format, and is no lasting fault of the bundle.
func TestDetectOnAFailingDisk(t *testing.T) {
	files := tree("manifests/a.yaml", csv, "metadata/annotations.yaml", annotations)
	for _, name := range []string{"manifests", "manifests/a.yaml", "metadata/annotations.yaml"} {
		_, err := convert.Convert(failing{files, name}, withV1(registryv1.Options{}))
		var refused *convert.Error
		if !errors.As(err, &refused) || refused.Permanent() {
			t.Errorf("%s fails: %v", name, err)
		}
	}
}

// TestPath: a folder is picked, and none outside.
func TestPath(t *testing.T) {
	files := tree("deploy/app/a.yaml", configMap, "top.yaml", strings.ReplaceAll(configMap, "name: a", "name: top"))
	for path, want := range map[string]string{
		"deploy": "1", "./deploy/app": "1", "deploy/app/": "1", "": "2", ".": "2", "./": "2", "deploy/../deploy": "1",
		"../x": "leaves", "/deploy": "leaves", "deploy/../..": "leaves", `deploy\app`: "leaves", "missing": "no folder", "top.yaml": "no folder",
	} {
		result, err := convert.Convert(files, convert.Options{Path: path, InstallNamespace: "ns"})
		got := fmt.Sprint(len(result.Objects))
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("path %q: %s, want %s", path, got, want)
		}
	}
}

// TestPackage: a package is found by itself where nothing else is, and by its path anywhere.
func TestPackage(t *testing.T) {
	var data bytes.Buffer
	compressed := gzip.NewWriter(&data)
	archive := tar.NewWriter(compressed)
	for _, file := range [][2]string{{"x/Chart.yaml", chartYAML}, {"x/templates/a.yaml", chartTemplate}} {
		if err := archive.WriteHeader(&tar.Header{Name: file[0], Size: int64(len(file[1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	files := tree("one/x-1.0.0.tgz", data.String(), "two/x-1.0.0.tgz", data.String(), "two/y.tgz", "", "beside/x.tgz", data.String(), "beside/a.yaml", configMap)
	for path, want := range map[string]string{
		"one": "helm", "one/x-1.0.0.tgz": "helm", "two/x-1.0.0.tgz": "helm", "./two/../one/x-1.0.0.tgz": "helm", "beside/x.tgz": "helm",
		"beside": "plain+v0", "two": "no manifests were found", "two/y.tgz": "no package of a chart", "one/z.tgz": "no folder",
	} {
		result, err := convert.Convert(files, convert.Options{Path: path, InstallNamespace: "ns"})
		got := string(result.Format)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("path %q: %s, want %s", path, got, want)
		}
	}
	if _, err := convert.Convert(files, convert.Options{Path: "one/x-1.0.0.tgz", Format: convert.PlainV0, InstallNamespace: "ns"}); err == nil || !strings.Contains(err.Error(), "names a package of a chart") {
		t.Errorf("a package as plain manifests: %v", err)
	}
}

// TestInstallNamespace: it is required and checked before anything is read.
func TestInstallNamespace(t *testing.T) {
	for _, namespace := range []string{"", "Upper", "a.b", strings.Repeat("a", 64)} {
		if _, err := convert.Convert(tree("a.yaml", configMap), convert.Options{InstallNamespace: namespace}); err == nil {
			t.Errorf("%q is accepted", namespace)
		}
	}
}

// TestCandidatesBelowAPath: they are named as spec.path has to name them.
func TestCandidatesBelowAPath(t *testing.T) {
	files := tree("apps/a/kustomization.yaml", "", "apps/b/kustomization.yaml", "", "other.yaml", configMap)
	_, err := convert.Convert(files, convert.Options{Path: "apps", InstallNamespace: "ns"})
	if want := `right in the folder "apps" of spec.path, and these folders hold one: apps/a (kustomize), apps/b (kustomize); set spec.path to one of "apps/a", "apps/b"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
