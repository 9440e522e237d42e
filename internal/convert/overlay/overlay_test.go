// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}, annotations: {tier: front}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.2", env: [{name: A, value: a}], ports: [{containerPort: 80}]}
      - {name: log, image: "quay.io/org/log@sha256:abc"}
      volumes: [{name: c, configMap: {name: settings}}]
`

const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: other}
data: {a: b}
`

// read reads objects from a text.
func read(t testing.TB, text string) []manifest.Manifest {
	t.Helper()
	reader := manifest.NewReader(nil, manifest.Limits{})
	objects := reader.Objects("bundle.yaml", []byte(text))
	if problems := reader.Problems(); len(problems) > 0 {
		t.Fatal(problems)
	}
	return objects
}

func bundle(related ...string) overlay.Bundle {
	cluster := []string{"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Namespace", "ValidatingWebhookConfiguration", "PersistentVolume", "PriorityClass", "StorageClass", "APIService"}
	return overlay.Bundle{
		Namespace: "install", RelatedImages: related,
		ClusterScoped: func(kind schema.GroupKind) bool { return slices.Contains(cluster, kind.Kind) },
	}
}

// outcome applies overlays and says what comes of it: objects or problems.
func outcome(t testing.TB, text string, o overlay.Options, related ...string) (objects string, warnings []string, problems string) {
	t.Helper()
	result, found := overlay.Apply(read(t, text), bundle(related...), o)
	var lines []string
	for _, p := range found {
		lines = append(lines, p.String())
	}
	var out strings.Builder
	for _, m := range result.Manifests {
		data, err := yaml.Marshal(m.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(data))
	}
	return out.String(), result.Warnings, strings.Join(lines, "\n")
}

func target(s overlay.Selector) *overlay.Selector { return &s }

// list are processors in this order.
func list(all ...overlay.Processor) overlay.Options { return overlay.Options{Processors: all} }

// patches are a processor each.
func patches(all ...overlay.Patch) []overlay.Processor {
	var out []overlay.Processor
	for _, p := range all {
		out = append(out, overlay.Processor{Patch: &p})
	}
	return out
}

// prefixed puts a prefix before all names.
func prefixed(prefix string) overlay.Options {
	return list(overlay.Processor{Names: &overlay.Names{Prefix: prefix}})
}

// imaging changes images, and then moves them.
func imaging(images []overlay.Image, rewrites []overlay.Rewrite) overlay.Options {
	return list(overlay.Processor{Images: images}, overlay.Processor{ImageRewrites: rewrites})
}

// TestSelectors: which objects a patch with a target is of.
func TestSelectors(t *testing.T) {
	const three = web + "---\n" + settings + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web-2, labels: {app: web, size: big}}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n"
	for name, c := range map[string]struct {
		reason   string
		selector overlay.Selector
		want     string
	}{
		"nothing":               {"what is left out selects all", overlay.Selector{}, "web settings web-2 web"},
		"kind":                  {"one kind", overlay.Selector{Kind: "Service"}, "web-2"},
		"name is a whole":       {"no part of a name", overlay.Selector{Name: "we"}, ""},
		"name as expression":    {"anchored at both ends", overlay.Selector{Name: "web.*"}, "web web-2 web"},
		"alternatives":          {"both anchored", overlay.Selector{Name: "settings|web"}, "web settings web"},
		"group":                 {"of the API", overlay.Selector{Group: "apps"}, "web"},
		"version":               {"of the API", overlay.Selector{Version: "v2"}, ""},
		"install namespace":     {"objects without one go there, but not those of the cluster", overlay.Selector{Namespace: "install"}, "web web-2"},
		"own namespace":         {"objects with one stay there", overlay.Selector{Namespace: "other"}, "settings"},
		"labels":                {"as in kubectl", overlay.Selector{LabelSelector: "app=web,size notin (small)"}, "web web-2"},
		"annotations":           {"in the same way", overlay.Selector{AnnotationSelector: "tier in (front)"}, "web"},
		"all have to fit":       {"they are joined", overlay.Selector{Kind: "Service", LabelSelector: "size"}, "web-2"},
		"a dot is any, as Flux": {"an expression, not a string", overlay.Selector{Name: "w.b"}, "web web"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, warnings, problems := outcome(t, three, list(patches(overlay.Patch{Text: "metadata: {annotations: {hit: 'yes'}}", Target: target(c.selector)})...))
			var hit []string
			for _, object := range strings.Split(objects, "---\n")[1:] {
				if strings.Contains(object, "hit:") {
					_, after, _ := strings.Cut(object, "\n  name: ")
					name, _, _ := strings.Cut(after, "\n")
					hit = append(hit, name)
				}
			}
			if got := strings.Join(hit, " "); got != c.want || problems != "" {
				t.Errorf("%s: %q instead of %q %s", c.reason, got, c.want, problems)
			}
			if (len(warnings) == 1) != (c.want == "") {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

// TestPatches: what patches do, and what is said where they cannot.
func TestPatches(t *testing.T) {
	anything := &overlay.Selector{}
	deployment := &overlay.Selector{Kind: "Deployment"}
	for name, c := range map[string]struct {
		reason  string
		patches []overlay.Patch
		has     []string
		lacks   []string
		says    string
		warns   string
	}{
		"merge by name": {
			reason:  "lists of Kubernetes' kinds are taken apart by their keys",
			patches: []overlay.Patch{{Text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: log, image: other}]}}}"}},
			has:     []string{"image: nginx:1.2", "image: other"}, lacks: []string{"quay.io"},
		},
		"several documents": {
			reason:  "each names its own object",
			patches: []overlay.Patch{{Text: "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\nspec: {replicas: 5}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: settings}\ndata: {c: d}"}},
			has:     []string{"replicas: 5", "c: d", "a: b"},
		},
		"delete an object": {
			reason:  "as in kustomize",
			patches: []overlay.Patch{{Text: "$patch: delete", Target: &overlay.Selector{Kind: "ConfigMap"}}},
			lacks:   []string{"ConfigMap"},
		},
		"delete a field and an item": {
			reason:  "null and $patch take out",
			patches: []overlay.Patch{{Text: "spec: {replicas: null, template: {spec: {containers: [{name: log, $patch: delete}]}}}", Target: deployment}},
			has:     []string{"nginx"}, lacks: []string{"replicas", "quay.io"},
		},
		"labels taken away": {
			reason:  "the library of kustomize would write the text null",
			patches: []overlay.Patch{{Text: "metadata: {labels: {app: null}, annotations: {tier: null, new: x}}", Target: deployment}},
			has:     []string{"new: x"}, lacks: []string{"tier", "null"},
		},
		"replace an object": {
			reason:  "what it is stays",
			patches: []overlay.Patch{{Text: "$patch: replace\ndata: {new: x}", Target: &overlay.Selector{Kind: "ConfigMap"}}},
			has:     []string{"new: x", "name: settings", "kind: ConfigMap"}, lacks: []string{"a: b", "$patch"},
		},
		"identity stays": {
			reason:  "a patch with a target has whatever name its author gave it",
			patches: []overlay.Patch{{Text: "apiVersion: v9\nkind: X\nmetadata: {name: y, namespace: z}\nspec: {replicas: 3}", Target: deployment}},
			has:     []string{"name: web", "kind: Deployment", "apiVersion: apps/v1", "replicas: 3"}, lacks: []string{"namespace: z"},
		},
		"operations": {
			reason:  "JSON 6902, as YAML",
			patches: []overlay.Patch{{Text: "- {op: replace, path: /spec/replicas, value: 9}\n- {op: add, path: /spec/template/spec/containers/-, value: {name: new, image: x}}\n- {op: remove, path: /metadata/labels}\n- {op: test, path: /spec/replicas, value: 9}\n- {op: copy, from: /spec/replicas, path: /spec/revisionHistoryLimit}\n- {op: move, from: /metadata/annotations/tier, path: /metadata/annotations/example.org~1x}", Target: deployment}},
			has:     []string{"replicas: 9", "image: x", "revisionHistoryLimit: 9", "example.org/x: front"},
		},
		"one after the other": {
			reason:  "a patch sees what those before it made",
			patches: []overlay.Patch{{Text: "metadata: {labels: {new: a}}", Target: deployment}, {Text: `[{"op":"replace","path":"/metadata/labels/new","value":"b"}]`, Target: &overlay.Selector{LabelSelector: "new=a"}}},
			has:     []string{"new: b"},
		},
		"renamed by a patch": {
			reason:  "what names it follows",
			patches: []overlay.Patch{{Text: `[{"op":"replace","path":"/metadata/name","value":"better"}]`, Target: &overlay.Selector{Kind: "ConfigMap"}}, {Text: `[{"op":"remove","path":"/metadata/namespace"}]`, Target: &overlay.Selector{Name: "settings"}}},
			has:     []string{"name: better"},
		},
		"nothing selected":     {reason: "a warning", patches: []overlay.Patch{{Text: "a: b", Target: &overlay.Selector{Kind: "Pod"}}}, warns: "spec.processors[0].patch selects no object (kind Pod)"},
		"not in the bundle":    {reason: "a warning", patches: []overlay.Patch{{Text: "apiVersion: v1\nkind: Pod\nmetadata: {name: x}"}}, warns: "spec.processors[0].patch is of Pod x, which the bundle does not contain"},
		"failing operation":    {reason: "which, where, and why, and no value", patches: []overlay.Patch{{Text: "[{op: add, path: /spec/x, value: hunter22}, {op: remove, path: /spec/nothing}]", Target: deployment}}, says: "bundle.yaml (document 1): Deployment web: spec.processors[0].patch: operation 2 (remove /spec/nothing) fails: the object has nothing there; correct it, or let target select other objects [overlay]"},
		"failing test":         {reason: "values are not quoted", patches: []overlay.Patch{{Text: "[{op: test, path: /data/a, value: hunter22}]", Target: &overlay.Selector{Kind: "ConfigMap"}}}, says: "bundle.yaml (document 2): ConfigMap settings: spec.processors[0].patch: operation 1 (test /data/a) fails: the object has another value there, or none; correct it, or let target select other objects [overlay]"},
		"index":                {reason: "beyond the end", patches: []overlay.Patch{{Text: "[{op: replace, path: /spec/template/spec/containers/7, value: x}]", Target: deployment}}, says: "(replace /spec/template/spec/containers/7) fails: the "},
		"path through a text":  {reason: "it has no fields", patches: []overlay.Patch{{Text: "[{op: add, path: /kind/x/y, value: hunter22}]", Target: deployment}}, says: "operation 1 (add /kind/x/y) fails:"},
		"metadata away":        {reason: "it would be no object", patches: []overlay.Patch{{Text: "[{op: remove, path: /metadata}]", Target: deployment}}, says: "the patch takes its metadata away"},
		"no target":            {reason: "of which object?", patches: []overlay.Patch{{Text: "[{op: remove, path: /a}]"}}, says: "spec.processors[0].patch: a JSON 6902 patch does not say by itself which object it is of; add a target [overlay]"},
		"no name":              {reason: "of which object?", patches: []overlay.Patch{{Text: "spec: {}"}}, says: "spec.processors[0].patch: the patch has no target, and does not name its object by kind and metadata.name; add a target, or what is missing [overlay]"},
		"no operation":         {reason: "it says nothing", patches: []overlay.Patch{{Text: "[]", Target: anything}}, says: "spec.processors[0].patch: the patch is empty"},
		"comments":             {reason: "it says nothing", patches: []overlay.Patch{{Text: "# later\n", Target: anything}}, says: "spec.processors[0].patch: the patch is empty"},
		"a text":               {reason: "neither", patches: []overlay.Patch{{Text: "hunter22", Target: anything}}, says: "spec.processors[0].patch: the patch is neither a mapping nor a list of operations"},
		"no YAML":              {reason: "said with the line", patches: []overlay.Patch{{Text: "a: [b", Target: anything}}, says: "spec.processors[0].patch (document 1): this is not valid YAML: line 1"},
		"unknown operation":    {reason: "named by its number", patches: []overlay.Patch{{Text: "[{op: set, path: /a}]", Target: anything}}, says: "spec.processors[0].patch, operation 1: op is none of add, remove, replace, move, copy and test; see RFC 6902 [overlay]"},
		"no value":             {reason: "it would set null", patches: []overlay.Patch{{Text: "[{op: add, path: /a}]", Target: anything}}, says: "spec.processors[0].patch, operation 1: add needs value"},
		"no pointer":           {reason: "as in kubectl edit", patches: []overlay.Patch{{Text: "[{op: remove, path: spec.a}]", Target: anything}}, says: "spec.processors[0].patch, operation 1: path is no JSON pointer"},
		"mixed":                {reason: "two patches", patches: []overlay.Patch{{Text: "[{op: remove, path: /a}]\n---\na: b", Target: anything}}, says: "spec.processors[0].patch: the patch holds a list of operations and further documents"},
		"documents and target": {reason: "which is of it?", patches: []overlay.Patch{{Text: "a: b\n---\nc: d", Target: anything}}, says: "spec.processors[0].patch: the patch has a target, and several documents"},
		"expression":           {reason: "named by its field", patches: []overlay.Patch{{Text: "a: b", Target: &overlay.Selector{Name: "("}}}, says: "spec.processors[0].patch.target: name: \"(\" is no regular expression: missing closing ) at \"(\"; correct it [overlay]"},
		"label selector":       {reason: "named by its field", patches: []overlay.Patch{{Text: "a: b", Target: &overlay.Selector{LabelSelector: "a in b"}}}, says: "spec.processors[0].patch.target: labelSelector cannot be read:"},
		"a list for a mapping": {reason: "said with its place", patches: []overlay.Patch{{Text: "spec: {template: [hunter22]}", Target: deployment}}, says: "bundle.yaml (document 1): Deployment web: spec.processors[0].patch: the patch has a mapping, a list or a single value at .spec.template, and the object another of the three"},
		"directive":            {reason: "none of the three", patches: []overlay.Patch{{Text: "spec: {$patch: hunter22}", Target: deployment}}, says: "the patch does not fit the object"},
		"collision": {
			reason:  "two objects would be one",
			patches: []overlay.Patch{{Text: "[{op: replace, path: /kind, value: Deployment}, {op: replace, path: /apiVersion, value: apps/v1}, {op: replace, path: /metadata/name, value: web}, {op: replace, path: /metadata/namespace, value: install}]", Target: &overlay.Selector{Kind: "ConfigMap"}}},
			says:    "after spec.processors[0].patch, two objects of the bundle are the same one: Deployment web and ConfigMap settings",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, warnings, problems := outcome(t, web+"---\n"+settings, list(patches(c.patches...)...))
			if !strings.Contains(problems, c.says) || c.says == "" && problems != "" {
				t.Errorf("%s: said %q, want %q", c.reason, problems, c.says)
			}
			if strings.Contains(problems, "hunter22") {
				t.Errorf("quotes a value: %s", problems)
			}
			for _, text := range c.has {
				if !strings.Contains(objects, text) {
					t.Errorf("%s: no %q in\n%s", c.reason, text, objects)
				}
			}
			for _, text := range c.lacks {
				if strings.Contains(objects, text) {
					t.Errorf("%s: %q in\n%s", c.reason, text, objects)
				}
			}
			if got := strings.Join(warnings, "\n"); got != c.warns {
				t.Errorf("%s: warned %q, want %q", c.reason, got, c.warns)
			}
		})
	}
}

// TestImages: overrides by name, then rewrites by prefix.
func TestImages(t *testing.T) {
	for image, c := range map[string]struct {
		images   []overlay.Image
		rewrites []overlay.Rewrite
		want     string
	}{
		"nginx":                               {images: []overlay.Image{{Name: "nginx", NewTag: "2"}}, want: "nginx:2"},
		"nginx:1":                             {images: []overlay.Image{{Name: "nginx", NewName: "m:5000/n"}}, want: "m:5000/n:1"},
		"nginx:1@sha256:ab":                   {images: []overlay.Image{{Name: "nginx", NewTag: "2"}}, want: "nginx:2"},
		"m:5000/a@sha256:ab":                  {images: []overlay.Image{{Name: "m:5000/a", Digest: "sha256:cd"}}, want: "m:5000/a@sha256:cd"},
		"a/b:1":                               {images: []overlay.Image{{Name: "a/b", NewTag: "2", Digest: "sha256:cd"}}, want: "a/b:2@sha256:cd"},
		"c:1":                                 {images: []overlay.Image{{Name: "c", NewName: "d"}, {Name: "d", NewTag: "2"}}, want: "d:2"},
		"nginxx:1":                            {images: []overlay.Image{{Name: "nginx", NewTag: "2"}}, want: "nginxx:1"},
		"ngin.:1":                             {images: []overlay.Image{{Name: "ngin.", NewTag: "2"}}, want: "ngin.:2"},
		"quay.io/org/a:1":                     {rewrites: []overlay.Rewrite{{"quay.io", "m/quay"}}, want: "m/quay/org/a:1"},
		"quay.io/org/b@sha256:ab":             {rewrites: []overlay.Rewrite{{"quay.io", "m/quay"}, {"quay.io/org", "x"}}, want: "x/b@sha256:ab"},
		"quay.io/organic/a:1":                 {rewrites: []overlay.Rewrite{{"quay.io/org", "x"}}, want: "quay.io/organic/a:1"},
		"quay.io/org:1":                       {rewrites: []overlay.Rewrite{{"quay.io/org", "x/y"}}, want: "x/y:1"},
		"localhost:5000/a":                    {rewrites: []overlay.Rewrite{{"localhost", "x"}}, want: "localhost:5000/a"},
		"localhost:5000/b:1":                  {rewrites: []overlay.Rewrite{{"localhost:5000", "x:1"}}, want: "x:1/b:1"},
		"redis":                               {rewrites: []overlay.Rewrite{{"docker.io", "m/hub"}}, want: "m/hub/library/redis"},
		"bitnami/redis:7":                     {rewrites: []overlay.Rewrite{{"docker.io", "m/hub"}}, want: "m/hub/bitnami/redis:7"},
		"docker.io/x/y":                       {rewrites: []overlay.Rewrite{{"docker.io/x", "m"}, {"docker.io", "n"}}, want: "m/y"},
		"my/own:1":                            {rewrites: []overlay.Rewrite{{"my", "m"}}, want: "m/own:1"},
		"quay.io/a:1":                         {images: []overlay.Image{{Name: "quay.io/a", NewTag: "2"}}, rewrites: []overlay.Rewrite{{"quay.io", "m"}}, want: "m/a:2"},
		"once.example/a:1":                    {rewrites: []overlay.Rewrite{{"once.example", "m"}, {"m", "n"}}, want: "m/a:1"},
		"reg.example.org:443/a/b:1@sha256:cd": {rewrites: []overlay.Rewrite{{"reg.example.org:443/a", "m"}}, want: "m/b:1@sha256:cd"},
	} {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			for kind, path := range map[string]string{"apps/v1 Deployment": "spec: {template: {spec: %s}}", "batch/v1 CronJob": "spec: {jobTemplate: {spec: {template: {spec: %s}}}}", "v1 Pod": "spec: %s", "v1 PodTemplate": "template: {spec: %s}", "argoproj.io/v1alpha1 Rollout": "spec: {template: {spec: %s}}"} {
				version, name, _ := strings.Cut(kind, " ")
				text := "apiVersion: " + version + "\nkind: " + name + "\nmetadata: {name: x}\n" + fmt.Sprintf(path, fmt.Sprintf("{%s: [{name: a, image: %q}]}", list, image))
				objects, _, problems := outcome(t, text, imaging(c.images, c.rewrites))
				if problems != "" || !strings.Contains(objects, "image: "+c.want+"\n") {
					t.Errorf("%s in %s of %s: want %s, got %s\n%s", image, list, kind, c.want, problems, objects)
				}
			}
		}
	}
}

// TestUnusedImages are reported.
func TestUnusedImages(t *testing.T) {
	_, warnings, _ := outcome(t, web, imaging(
		[]overlay.Image{{Name: "nginx", NewTag: "3"}, {Name: "missing", NewTag: "3"}}, []overlay.Rewrite{{"gcr.io", "m"}, {"quay.io", "m"}},
	))
	want := []string{"spec.processors[0].images[1]: no container has the image missing", "spec.processors[1].imageRewrites[0]: no image is of gcr.io"}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

// TestRelatedImages: the images in an operator's variables and arguments move too.
func TestRelatedImages(t *testing.T) {
	const operator = `apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  template:
    spec:
      volumes: [{name: m, image: {reference: "quay.io/a/model:1"}}]
      containers:
      - name: op
        image: quay.io/a/op:1
        env:
        - {name: RELATED_IMAGE_DB, value: "quay.io/a/db:1"}
        - {name: SIDECAR, value: "quay.io/a/side@sha256:ab"}
        - {name: HOMEPAGE, value: quay.io/a/home}
        args: ["--image=quay.io/a/side@sha256:ab", "quay.io/a/side@sha256:ab", "--url=quay.io/a/x"]
`
	objects, warnings, problems := outcome(t, operator, imaging(nil, []overlay.Rewrite{{"quay.io", "m"}}), "quay.io/a/side@sha256:ab")
	if problems != "" || len(warnings) > 0 {
		t.Error(problems, warnings)
	}
	for _, want := range []string{"reference: m/a/model:1", "image: m/a/op:1", "value: m/a/db:1", "value: m/a/side@sha256:ab", "value: quay.io/a/home", "--image=m/a/side@sha256:ab", "- m/a/side@sha256:ab", "--url=quay.io/a/x"} {
		if !strings.Contains(objects, want) {
			t.Errorf("no %q in\n%s", want, objects)
		}
	}
}

// TestMetadata: on objects, not on what they select or create.
func TestMetadata(t *testing.T) {
	objects, _, problems := outcome(t, web, list(overlay.Processor{Metadata: &overlay.Metadata{Labels: map[string]string{"app": "mine", "team": "a"}, Annotations: map[string]string{"Example.org/X": "${not} a variable"}}}))
	if problems != "" || strings.Count(objects, "app: mine") != 1 || strings.Count(objects, "team: a") != 1 || strings.Count(objects, "app: web") != 2 || !strings.Contains(objects, "${not} a variable") {
		t.Errorf("%s\n%s", problems, objects)
	}
	for name, m := range map[string]overlay.Metadata{
		`spec.processors[0].metadata.labels["a b"]`:   {Labels: map[string]string{"a b": "c"}},
		`spec.processors[0].metadata.labels["a"]`:     {Labels: map[string]string{"a": "b c"}},
		`spec.processors[0].metadata.annotations[""]`: {Annotations: map[string]string{"": "c"}},
	} {
		if _, _, problems := outcome(t, web, list(overlay.Processor{Metadata: &m})); !strings.HasPrefix(problems, name+": the ") {
			t.Errorf("%s: said %q", name, problems)
		}
	}
}

// TestNothing: overlays that say nothing change nothing, also not the objects' identity in memory.
func TestNothing(t *testing.T) {
	given := read(t, web)
	result, problems := overlay.Apply(given, bundle(), overlay.Options{})
	if len(problems) > 0 || len(result.Manifests) != 1 || result.Manifests[0].Object != given[0].Object {
		t.Error(problems, result)
	}
}
