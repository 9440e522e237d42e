// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/kustomize"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// tree reads "-- name --" sections.
func tree(t *testing.T, text string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, section := range strings.Split(text, "-- ")[1:] {
		name, content, found := strings.Cut(section, " --\n")
		if !found {
			t.Fatalf("no name in %q", section)
		}
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return files
}

// shop uses most of what a kustomization can do.
const shop = `-- base/kustomization.yaml --
resources: [web.yaml, account.yaml]
configMapGenerator:
- name: settings
  literals: [colour=blue]
  files: [banner.txt, motd=texts/motd.txt]
  envs: [web.env]
secretGenerator:
- name: login
  literals: [password=hunter22]
-- base/banner.txt --
Welcome
-- base/texts/motd.txt --
Be kind
-- base/web.env --
# what it may use
LIMIT=10
EMPTY
-- base/web.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: example.org/web:1
        envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: login}}]
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec: {selector: {app: web}, ports: [{port: 80}]}
-- base/account.yaml --
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
-- parts/quota/kustomization.yaml --
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [quota.yaml]
patches:
- target: {kind: Deployment}
  patch: |
    - op: add
      path: /spec/template/spec/priorityClassName
      value: low
-- parts/quota/quota.yaml --
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {pods: "10"}}
-- overlays/eu/kustomization.yaml --
namespace: shop-eu
namePrefix: eu-
nameSuffix: -blue
resources: [../../base]
components: [../../parts/quota]
labels: [{pairs: {region: eu}, includeSelectors: true}]
commonAnnotations: {owner: shop}
images: [{name: example.org/web, newName: mirror.example.org/web, newTag: "2"}]
replicas: [{name: web, count: 3}]
configMapGenerator:
- {name: settings, behavior: merge, literals: [colour=green]}
patches:
- path: memory.yaml
- target: {kind: Service}
  path: port.yaml
patchesStrategicMerge:
- |-
  apiVersion: v1
  kind: ServiceAccount
  metadata: {name: web}
  automountServiceAccountToken: false
replacements:
- path: replace.yaml
- source: {kind: Service, name: web, fieldPath: spec.ports.0.port}
  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.port], options: {create: true}}]
sortOptions: {order: legacy}
buildMetadata: [managedByLabel]
-- overlays/eu/memory.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, resources: {limits: {memory: 64Mi}}}]}}}
-- overlays/eu/port.yaml --
- {op: replace, path: /spec/ports/0/port, value: 8080}
-- overlays/eu/replace.yaml --
source: {kind: ServiceAccount, name: web, fieldPath: metadata.name}
targets:
- select: {kind: Deployment}
  fieldPaths: [metadata.annotations.account]
  options: {create: true}
`

// What comes out is what the library gives for the same files on a disk.
func TestSameAsTheLibrary(t *testing.T) {
	files := tree(t, shop)
	for _, folder := range []string{"base", "overlays/eu"} {
		t.Run(folder, func(t *testing.T) {
			made, problems := kustomize.Convert(files, folder, manifest.Limits{})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var got []any
			for _, m := range made.Manifests {
				got = append(got, m.Object.Object)
			}
			if want := library(t, files, folder); string(jsonOf(t, got)) != string(jsonOf(t, want)) {
				t.Errorf("got  %s\nwant %s", jsonOf(t, got), jsonOf(t, want))
			}
		})
	}
}

// library builds with the library alone, from a disk.
func library(t *testing.T, files fstest.MapFS, folder string) []any {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, folder))
	if err != nil {
		t.Fatal(err)
	}
	var objects []any
	for _, resource := range made.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

func jsonOf(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The same files give the same bytes, whatever was built before.
func TestDeterministic(t *testing.T) {
	files, first := tree(t, shop), []byte(nil)
	for range 50 {
		made, problems := kustomize.Convert(files, "overlays/eu", manifest.Limits{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		got := jsonOf(t, made.Manifests)
		if first == nil {
			first = got
		}
		if !bytes.Equal(got, first) {
			t.Fatalf("got %s, at first %s", got, first)
		}
	}
}

// problemsOf is what is said about files.
func problemsOf(t *testing.T, files fstest.MapFS, folder string) string {
	t.Helper()
	_, problems := kustomize.Convert(files, folder, manifest.Limits{})
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

const one = "-- one.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"

// Whatever a kustomization names outside of the bundle is refused; TestNothingIsRun shows that nothing is asked or run.
var hostile = map[string]struct{ files, says string }{
	"URL":             {"-- kustomization.yaml --\nresources: ['http://127.0.0.1:1/a.yaml']\n", `resources names "http://127.0.0.1:1/a.yaml", which is not in the bundle`},
	"password":        {"-- kustomization.yaml --\nresources: ['https://u:hunter22@example.org/a.yaml?x=hunter22']\n", `which is not in the bundle`},
	"repository":      {"-- kustomization.yaml --\nresources: ['https://example.org/org/repo.git?ref=main']\n", `which is not in the bundle`},
	"bare repository": {"-- kustomization.yaml --\nresources: [github.com/org/repo]\n", `which is not in the bundle`},
	"folder called like a repository": {"-- kustomization.yaml --\nresources: [github.com/org/repo]\n-- github.com/org/repo/kustomization.yaml --\nresources: [one.yaml]\n-- github.com/org/repo/one.yaml --\n" +
		strings.SplitN(one, "\n", 2)[1], `which is not in the bundle`},
	"folder called like a URL": {"-- kustomization.yaml --\nresources: ['http:/127.0.0.1:1/one.yaml']\n-- http:/127.0.0.1:1/one.yaml --\n" + strings.SplitN(one, "\n", 2)[1], ""},
	"component from afar":      {"-- kustomization.yaml --\ncomponents: ['ssh://git@example.org/c']\n", "components names"},
	"patch from afar":          {"-- kustomization.yaml --\nresources: [one.yaml]\npatches: [{path: 'https://example.org/p.yaml'}]\n" + one, "patches names"},
	"climbing out":             {"-- a/kustomization.yaml --\nresources: [../../etc/passwd]\n", `"../../etc/passwd", which leaves the bundle`},
	"absolute":                 {"-- a/kustomization.yaml --\nresources: [/etc/passwd]\n", "which leaves the bundle"},
	"helm":                     {"-- a/kustomization.yaml --\nhelmCharts: [{name: a, repo: 'http://127.0.0.1:1'}]\n", "helmCharts is not supported"},
	"generators":               {"-- a/kustomization.yaml --\ngenerators: [g.yaml]\n", "generators is not supported"},
	"exec function": {"-- a/kustomization.yaml --\ntransformers:\n- |\n  apiVersion: x/v1\n  kind: X\n  metadata:\n    name: x\n    annotations:\n      config.kubernetes.io/function: 'exec: {path: ./run}'\n",
		"transformers is not supported"},
	"validators":    {"-- a/kustomization.yaml --\nvalidators: [v.yaml]\n", "validators is not supported"},
	"M31 schema":    {"-- a/kustomization.yaml --\nopenapi: {path: schema.json}\n", "openapi is not supported"},
	"origin":        {"-- a/kustomization.yaml --\nbuildMetadata: [originAnnotations]\n", "buildMetadata may only be managedByLabel"},
	"itself":        {"-- a/kustomization.yaml --\nresources: [../a]\n", "cycle detected"},
	"parent":        {"-- a/kustomization.yaml --\nresources: [..]\n-- kustomization.yaml --\nresources: [a]\n", "cycle detected"},
	"two files":     {"-- a/kustomization.yaml --\n{}\n-- a/kustomization.yml --\n{}\n", "the folder has kustomization.yaml and kustomization.yml"},
	"none":          {"-- a/one.yaml --\n{}\n", "the folder has no kustomization.yaml"},
	"unknown field": {"-- a/kustomization.yaml --\nresource: [a.yaml]\n", `unknown field "resource"`},
	"wrong type":    {"-- a/kustomization.yaml --\nresources: hunter22\n", "resources has to be of the type []string, and is a string"},
	"aliases": {"-- a/kustomization.yaml --\nresources: [bomb.yaml]\n-- a/bomb.yaml --\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
		"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", "bomb.yaml"},
	"literal":   {"-- a/kustomization.yaml --\nsecretGenerator: [{name: s, literals: [hunter22]}]\n", `secretGenerator "s": a literal is given as KEY=VALUE`},
	"no output": {"-- a/kustomization.yaml --\nnamespace: x\n", "nothing comes out of the kustomization"},
	"patch without an object": {"-- a/kustomization.yaml --\nresources: [one.yaml]\npatches: [{patch: '[{op: replace, path: /data/x, value: hunter22}]', target: {name: one}}]\n" + strings.Replace(one, "-- one", "-- a/one", 1),
		"replace"},
}

func TestHostile(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			files := tree(t, c.files)
			folder := "."
			if strings.HasPrefix(c.files, "-- a/") {
				folder = "a"
			}
			said := problemsOf(t, files, folder)
			if !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, c.says)
			}
			if strings.Contains(said, "hunter22") || strings.Contains(said, "satchel-bundle") {
				t.Errorf("quotes a value or a name of its own: %s", said)
			}
		})
	}
}

// Nothing is run and nothing fetched, whatever a bundle says.
func TestNothingIsRun(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{"git", "helm", "docker", "podman"} {
		script := "#!/bin/sh\necho ran >>" + filepath.Join(dir, "ran") + "\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o700); err != nil { //nolint:gosec // it has to be executable
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		files := tree(t, hostile[name].files)
		for _, folder := range []string{".", "a"} {
			_, _ = kustomize.Convert(files, folder, manifest.Limits{})
		}
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err == nil {
		t.Errorf("programs were run: %s", ran)
	}
}
