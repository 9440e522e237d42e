// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

var update = flag.Bool("update", false, "write the golden files")

// spec reads a spec of a BundleRollout.
func spec(t testing.TB, text string) *v1alpha1.BundleRolloutSpec {
	t.Helper()
	read := &v1alpha1.BundleRolloutSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), read); err != nil {
		t.Fatal(err)
	}
	return read
}

const full = `
template:
  metadata:
    labels: {team: a, sharding.fluxcd.io/key: "shard-$(region)"}
    annotations: {note: "$(cluster) stays as it is"}
  spec:
    serviceAccountName: deployer
    path: overlays/$(region)/$$(region)
    target:
      namespace: apps-$(cluster)
      serviceAccountName: deployer-$(region)
    health:
      timeout: 2m
    helm:
      releaseName: app-$(cluster)
      values: {replicas: 3, text: "$(region) is text here", list: [1, 2]}
      valuesFrom: [{kind: ConfigMap, name: "values-$(cluster)"}, {kind: Secret, name: shared}, {kind: ConfigMap, name: absent, optional: true}]
    processors:
    - variables:
        values: {tier: "$(tier)-x", region: mine}
        valuesFrom: [{kind: ConfigMap, name: all}]
variables:
- {name: region, label: topology.kubernetes.io/region, default: eu}
- {name: tier, annotation: tier}
- {name: fixed, value: ""}
overrides:
- {selector: {matchLabels: {ring: canary}}, patch: {helm: {values: {replicas: 1, list: [9]}}, interval: 1h}}
- {selector: {}, patch: {helm: {values: {text: null}}}}
- {selector: {matchLabels: {ring: canary}}, patch: {helm: {values: {replicas: 2}}}}
`

func fullData(t testing.TB) Data {
	s := spec(t, full)
	return Data{Content: "sha256:c", Template: s.Template, Variables: s.Variables, Overrides: s.Overrides,
		Inputs: []FrozenInput{{Kind: "Secret", Name: "shared", Digest: "sha256:1"}, {Kind: "ConfigMap", Name: "absent"}, {Kind: "ConfigMap", Name: "all", Digest: "sha256:2"}}}
}

func canary() *Cluster {
	return &Cluster{
		Name: "dc1", Labels: map[string]string{"ring": "canary", "topology.kubernetes.io/region": "us"}, Annotations: map[string]string{"tier": "edge"},
		KubeConfig: &v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "dc1", Key: "value"}}},
	}
}

// TestRender is R12: variables, escapes, overrides in their order, copies of inputs.
func TestRender(t *testing.T) {
	if err := CheckTemplate(spec(t, full)); err != nil {
		t.Fatal(err)
	}
	renderer, err := NewRenderer("apps", "7f3a91c2de", fullData(t), []v1alpha1.RolloutDependency{{Name: "cni"}})
	if err != nil {
		t.Fatal(err)
	}
	plain := &Cluster{Name: "dc2", Annotations: map[string]string{"tier": "core"}}
	var text []byte
	for _, cluster := range []*Cluster{canary(), plain} {
		child, err := renderer.Render(cluster)
		if err != nil {
			t.Fatal(err)
		}
		hash, err := SpecHash(&child.Spec, nil)
		if err != nil || !SameForm(hash) || len(hash) != len("rollout-spec/2:")+64 {
			t.Fatalf("%s: %v", hash, err)
		}
		one, err := yaml.Marshal(map[string]any{"name": child.Name, "labels": child.Labels, "annotations": child.Annotations, "spec": child.Spec, "hash": hash})
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), one...)
	}
	if *update {
		if err := os.WriteFile("testdata/render.yaml", text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/render.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHash wants another hash where anything differs that a cluster gets, and only there.
func TestHash(t *testing.T) {
	hashOf := func(cluster *Cluster, inputs ...string) string {
		renderer, err := NewRenderer("apps", "7f3a91c2de", fullData(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		child, err := renderer.Render(cluster)
		if err != nil {
			t.Fatal(err)
		}
		hash, err := SpecHash(&child.Spec, inputs)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	base := hashOf(canary())
	moved, other, annotated := canary(), canary(), canary()
	moved.Labels["topology.kubernetes.io/region"] = "ap"
	other.Labels["unused"] = "x"
	annotated.Annotations["tier"] = "core"
	if hashOf(moved) == base || hashOf(annotated) == base || hashOf(canary(), "sha256:x") == base {
		t.Error("a change has no other hash")
	}
	if hashOf(other) != base || hashOf(canary()) != base {
		t.Error("the hash changes for nothing")
	}
}

// TestRenderIsRefused names clusters that lack something.
func TestRenderIsRefused(t *testing.T) {
	renderer, err := NewRenderer("apps", "7f3a91c2de", fullData(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = renderer.Render(&Cluster{Name: "dc3"})
	if err == nil || !strings.Contains(err.Error(), "spec.processors[0].variables.values.tier: the variable tier has no value: give the cluster the label or annotation") {
		t.Errorf("got %v", err)
	}
}

// TestCheckTemplate is about specs that the CRD accepts.
func TestCheckTemplate(t *testing.T) {
	with := func(template string) string { return "template: {spec: {serviceAccountName: a, " + template + "}}" }
	patch := func(patch string) string {
		return "template: {spec: {serviceAccountName: a}}\noverrides: [{selector: {}, patch: " + patch + "}]"
	}
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"least":            {"the rest has defaults", with(""), ""},
		"duration":         {"a type of its own", with("health: {timeout: 1m}, interval: 90s"), ""},
		"no account":       {"it installs the bundle", "template: {spec: {path: a}}", "spec.template.spec.serviceAccountName is missing"},
		"source":           {"the rollout sets it", with("source: {}, suspend: true"), "spec.template.spec.source is set by the rollout: remove it\nspec.template.spec.suspend is set by the rollout"},
		"unknown fields":   {"both are named", with("pth: a, helm: {valus: {}}"), "spec.template.spec.helm.valus"},
		"wrong type":       {"with its path", with("helm: {valuesFrom: [{kind: Secret, name: 7}]}"), "spec.template.spec.helm.valuesFrom[0].name"},
		"no object":        {"null is none", "template: {spec: null}", "spec.template.spec is not an object"},
		"unknown variable": {"it has no value on any cluster", with("path: a/$(zone)"), "spec.path: the variable zone has no value"},
		"install namespace": {
			"it cannot change, and labels do", with(`target: {namespace: "$(region)"}`) + "\nvariables: [{name: region, value: a}]",
			"spec.template.spec.target.namespace may have no variable but $(cluster)",
		},
		"deadline":          {"clusters would be overdue before they fail", with("health: {timeout: 15m}"), "spec.strategy.progressDeadline (15m0s) has to be longer than spec.template.spec.health.timeout (15m0s)"},
		"patched deadline":  {"as above", patch("{health: {timeout: 1h}}"), "has to be longer than spec.overrides[0].patch, merged.health.timeout (1h0m0s)"},
		"account in patch":  {"it is the same on all clusters", patch("{serviceAccountName: root}"), "spec.overrides[0].patch.serviceAccountName has to be the same on all clusters"},
		"approval in patch": {"an approval is not circumvented", patch("{approval: null, target: {namespace: x}}"), "spec.overrides[0].patch.approval has to be the same on all clusters: set it in spec.template.spec\nspec.overrides[0].patch.target.namespace"},
		"no target":         {"the namespace is in it", patch("{target: null}"), "spec.overrides[0].patch.target.namespace has to be the same on all clusters"},
		"own target":        {"the account on the cluster may differ", patch("{target: {serviceAccountName: other}}"), ""},
		"cluster":           {"the rollout sets it", patch("{target: {kubeConfig: {secretRef: {name: x}}}}"), "spec.overrides[0].patch.target.kubeConfig is set by the rollout: remove it"},
		"unknown in patch":  {"after the merge", patch("{pth: a}"), "spec.overrides[0].patch, merged.pth"},
		"patch of none":     {"a list is no patch", patch("[]"), "spec.overrides[0].patch is not an object"},
		"large patch":       {"16 KiB", patch("{path: " + strings.Repeat("a", MaxPatchBytes) + "}"), "spec.overrides[0].patch has 16395 bytes, more than 16384"},
		"large template":    {"64 KiB", with("path: " + strings.Repeat("a", MaxTemplateBytes)), "bytes, more than 65536"},
		"selector":          {"an operator that there is not", "template: {spec: {serviceAccountName: a}}\noverrides: [{selector: {matchExpressions: [{key: a, operator: Near}]}, patch: {}}]", "spec.overrides[0].selector: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckTemplate(spec(t, tc.spec))
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// TestRevision is about what makes another revision.
func TestRevision(t *testing.T) {
	base := fullData(t)
	digest, err := base.Digest()
	if err != nil || len(Name(digest)) != 10 || !strings.HasPrefix(digest, "sha256:"+Name(digest)) {
		t.Fatalf("%s, %v", digest, err)
	}
	pinned := base
	pinned.Sources = []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "example.org/a@sha256:1"}}}
	if again, _ := pinned.Digest(); again != digest {
		t.Error("another commit with the same content is another revision")
	}
	for name, change := range map[string]func(*Data){
		"content":   func(d *Data) { d.Content = "sha256:d" },
		"ignore":    func(d *Data) { d.Ignore = "*.md" },
		"template":  func(d *Data) { d.Template.Spec = apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName":"b"}`)} },
		"labels":    func(d *Data) { d.Template.Metadata.Labels = nil },
		"variables": func(d *Data) { d.Variables = d.Variables[1:] },
		"overrides": func(d *Data) { d.Overrides = d.Overrides[1:] },
		"inputs":    func(d *Data) { d.Inputs = d.Inputs[1:] },
	} {
		other := base
		change(&other)
		if got, err := other.Digest(); err != nil || got == digest {
			t.Errorf("%s: the same revision, %v", name, err)
		}
	}
	reordered := base
	reordered.Template.Spec = apiextensionsv1.JSON{Raw: []byte("{ \"b\": 1.0, \"a\": {\"d\": \"<\", \"c\": null} }")}
	sorted := base
	sorted.Template.Spec = apiextensionsv1.JSON{Raw: []byte(`{"a":{"c":null,"d":"\u003c"},"b":1.0}`)}
	one, _ := reordered.Digest()
	if other, _ := sorted.Digest(); one != other {
		t.Error("the order of keys, blanks and escapes count")
	}
	data, err := pinned.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data, digest)
	if err != nil || back.Sources[0].Image.Reference != "example.org/a@sha256:1" {
		t.Errorf("decoded %+v: %v", back, err)
	}
	if _, err := Decode(data, "sha256:"+strings.Repeat("0", 64)); err == nil {
		t.Error("another revision was accepted")
	}
	base.Content = strings.Repeat("x", MaxBytes)
	if _, err := base.Encode(); err == nil || !strings.Contains(err.Error(), "more than 524288") {
		t.Errorf("a large revision: %v", err)
	}
}

func TestNames(t *testing.T) {
	long := ChildName("rollout-of-a-bundle", strings.Repeat("c", 30)+"."+strings.Repeat("d", 32))
	other := ChildName("rollout-of-a-bundle", strings.Repeat("c", 30)+"."+strings.Repeat("e", 32))
	if ChildName("a", "b") != "a-b" || len(long) > 63 || long == other || strings.Contains(long, ".-") {
		t.Errorf("got %s and %s", long, other)
	}
	if cut := ChildName(strings.Repeat("r", 40), strings.Repeat("c", 10)+"..........."+"d"); strings.Contains(cut, ".-") {
		t.Errorf("got %s", cut)
	}
	if SourceName("apps", "7f3a91c2de") != "apps-7f3a91c2de" || InputName("apps", "7f3a91c2de", 2) != "apps-7f3a91c2de-2" {
		t.Error("names of revisions changed")
	}
}

func TestSharedInputs(t *testing.T) {
	s := spec(t, full)
	s.Overrides = append(s.Overrides, v1alpha1.RolloutOverride{Selector: metav1.LabelSelector{}, Patch: apiextensionsv1.JSON{
		Raw: []byte(`{"helm":{"valuesFrom":[{"kind":"Secret","name":"shared"},{"kind":"ConfigMap","name":"edge"},{"kind":"ConfigMap","name":"$$(a)"}]}}`),
	}})
	want := []FrozenInput{
		{Kind: "Secret", Name: "shared", Required: true}, {Kind: "ConfigMap", Name: "absent"}, {Kind: "ConfigMap", Name: "all", Required: true},
		{Kind: "ConfigMap", Name: "edge", Required: true}, {Kind: "ConfigMap", Name: "$$(a)", Required: true},
	}
	if diff := cmp.Diff(want, SharedInputs(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzRender is R13: patches, selectors and variables neither panic nor grow without bound, and rendering is deterministic.
func FuzzRender(f *testing.F) {
	f.Add(`{"serviceAccountName":"a","path":"$(cluster)"}`, `{"helm":{"values":{"a":1}}}`, "ring", "canary", "$(cluster)$$(x)")
	f.Add(`{"serviceAccountName":"a"}`, `{"helm":null}`, "", "", "$(cluster0)")
	f.Add(`null`, `[]`, "a/b/c", "\x00", "$(")
	f.Fuzz(func(t *testing.T, template, patch, key, value, label string) {
		s := &v1alpha1.BundleRolloutSpec{}
		s.Template.Spec.Raw = []byte(template)
		s.Template.Metadata.Labels = map[string]string{"l": label}
		s.Overrides = []v1alpha1.RolloutOverride{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{key: value}}, Patch: apiextensionsv1.JSON{Raw: []byte(patch)}}}
		if CheckTemplate(s) != nil {
			return
		}
		renderer, err := NewRenderer("r", "0123456789", Data{Template: s.Template, Overrides: s.Overrides}, nil)
		if err != nil {
			t.Fatalf("it was checked: %v", err)
		}
		cluster := &Cluster{Name: "c", Labels: map[string]string{key: value}}
		child, err := renderer.Render(cluster)
		if err != nil {
			return
		}
		again, err := renderer.Render(cluster)
		if diff := cmp.Diff(child, again); err != nil || diff != "" {
			t.Errorf("rendered again: %v %s", err, diff)
		}
		text, err := json.Marshal(child.Spec)
		if err != nil || len(text) > 8*(MaxTemplateBytes+MaxPatchBytes) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
		if child.Spec.Source != nil || child.Spec.Suspend || child.Spec.ServiceAccountName == "" || effective.IsRemote(child.Spec.Target.ClusterReference) {
			t.Errorf("the rollout does not set %s", text)
		}
	})
}
