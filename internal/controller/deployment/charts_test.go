// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// chart has a template of a ConfigMap with three values; more are further files.
func chart(more fstest.MapFS) fstest.MapFS {
	files := fstest.MapFS{
		"Chart.yaml":  file("apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
		"values.yaml": file("host: local\ndb: {password: none}\n"),
		"templates/cm.yaml": file(`apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  value: {{ printf "%v@%v" .Values.db.password .Values.host | quote }}
  kube: {{ .Capabilities.KubeVersion.Version | quote }}
  served: {{ .Capabilities.APIVersions.Has "satchel.dev/v1alpha1/BundleDeployment" | quote }}
`),
	}
	maps.Copy(files, more)
	return files
}

// valued gives a chart a ConfigMap with values, a single value of a Secret, and values of the spec.
func valued(inline string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		d.Spec.Helm = &v1alpha1.HelmOptions{
			ReleaseName: "eu",
			ValuesFrom: []v1alpha1.ValuesReference{
				{Kind: "ConfigMap", Name: "base", Optional: true},
				{Kind: "Secret", Name: "db", ValuesKey: "password", TargetPath: "db.password"},
			},
		}
		if inline != "" {
			d.Spec.Helm.Values = &apiextensionsv1.JSON{Raw: []byte(inline)}
		}
	}
}

func (r *rig) base(t *testing.T, namespace, document string) {
	t.Helper()
	base := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "base"}, Data: map[string]string{"values.yaml": document}}
	if err := r.admin.Create(t.Context(), base); err == nil {
		return
	}
	if err := r.admin.Update(t.Context(), base); err != nil {
		t.Fatal(err)
	}
}

// A chart gets its values in the order of the references, overridden by those of the spec; changes of any are applied. It
// gets the capabilities of the target cluster, and the plan records them.
func TestChartValues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.keep(t, namespace, "db", map[string]string{"password": canary + "-1"})
	published := r.publish(t, namespace, "app", "v1", chart(nil))
	key := r.deploy(t, namespace, "app", both(seldom, valued("")))
	d := r.ready(t, key, published.Revision)
	r.holds(t, namespace, "eu", canary+"-1@local")
	told := r.must(t, aConfigMap(namespace, "eu")).Object["data"].(map[string]any) //nolint:errcheck,forcetypeassert // a ConfigMap has it
	if c := d.Status.Plan.Capabilities; d.Status.Format != v1alpha1.FormatHelm || c == nil || c.KubeVersion != told["kube"] || !strings.HasPrefix(c.APIVersions, "sha256:") || told["served"] != "true" {
		t.Errorf("of the cluster it was told %v, and the plan says %+v", told, c)
	}
	r.base(t, namespace, "host: base\ndb: {password: base}")
	r.holds(t, namespace, "eu", canary+"-1@base")
	r.keep(t, namespace, "db", map[string]string{"password": canary + "-2"})
	r.holds(t, namespace, "eu", canary+"-2@base")
	r.edit(t, key, valued(`{"host": "spec"}`))
	r.holds(t, namespace, "eu", canary+"-2@spec")

	r.base(t, namespace, "- s3cr3t")
	r.unready(t, key, v1alpha1.ReasonInputInvalid)
	r.until(t, key, "it says where", says("configmap "+namespace+"/base, key values.yaml (spec.helm.valuesFrom[0]): line 1: values are a mapping", "stays applied and is kept from drifting"))
	r.base(t, namespace, "host: base")
	r.ready(t, key, published.Revision)
	r.nowhere(t, key)
}

// Messages of a template, a schema or the API server never show the value of a Secret; a message of the template itself is
// not shown at all (L1), since it can encode the value.
func TestI8ChartsThatFailOnSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"fail":     {files: fstest.MapFS{"templates/x.yaml": file(`{{ fail (printf "the password %s is weak" .Values.db.password) }}`)}, want: "the chart refuses the values; what it says is not shown"},
		"required": {files: fstest.MapFS{"templates/x.yaml": file(`{{ required (printf "%s needs a port" .Values.db.password) .Values.port }}`)}, want: "what it says is not shown"},
		"encoded":  {files: fstest.MapFS{"templates/x.yaml": file(`{{ fail (.Values.db.password | b64enc | upper) }}`)}, want: "templates/x.yaml: line 1: the chart refuses the values"},
		"function": {files: fstest.MapFS{"templates/x.yaml": file(`a: {{ .Values.db.password | semver }}`)}, want: "templates/x.yaml"},
		"no YAML":  {files: fstest.MapFS{"templates/x.yaml": file("a: [\n{{ .Values.db.password }}: {{ \"{\" }}\n")}, want: "templates/x.yaml"},
		"schema":   {files: fstest.MapFS{"values.schema.json": file(`{"properties": {"db": {"properties": {"password": {"type": "string", "enum": ["none", "strong"]}}}}}`)}, want: "password"},
		"an index": {files: fstest.MapFS{"templates/x.yaml": file(`a: {{ index (dict) .Values.db.password "x" }}`)}, want: "templates/x.yaml"},
		"an object": {files: fstest.MapFS{"templates/x.yaml": file("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: {{ .Values.db.password }}, ports: [{port: 80}]}")},
			want: "(redacted)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			r.keep(t, namespace, "db", map[string]string{"password": canary})
			r.publish(t, namespace, "app", "v1", chart(tc.files))
			key := r.deploy(t, namespace, "app", both(quick, valued("")))
			d := r.until(t, key, "it says what is wrong", says(tc.want))
			t.Log(describe(d))
			r.nowhere(t, key)
		})
	}
}

// The digest of the plan changes exactly when an input does, and the content digest is shown only if no Secret is an
// input.
func TestPlanDigestFollowsInputs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.keep(t, namespace, "db", map[string]string{"password": "one-1", "other": "x"})
	r.base(t, namespace, "host: a\nunused: a")
	published := r.publish(t, namespace, "app", "v1", chart(nil))
	key := r.deploy(t, namespace, "app", both(seldom, valued("")))
	plan := r.ready(t, key, published.Revision).Status.Plan
	asked := 0
	for _, step := range []struct {
		what   string
		change func()
		moves  bool
	}{
		{"a request", func() {}, false},
		{"another key of the Secret", func() { r.keep(t, namespace, "db", map[string]string{"password": "one-1", "other": "y"}) }, false},
		{"the Secret", func() { r.keep(t, namespace, "db", map[string]string{"password": "two-2"}) }, true},
		{"the ConfigMap", func() { r.base(t, namespace, "host: b\nunused: a") }, true},
		{"what the chart does not use", func() { r.base(t, namespace, "host: b\nunused: b") }, true},
		{"values of the spec", func() { r.edit(t, key, valued(`{"host": "c"}`)) }, true},
		{"the other key again", func() { r.keep(t, namespace, "db", map[string]string{"password": "two-2", "other": "z"}) }, false},
		{"no Secret", func() {
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Helm.ValuesFrom = d.Spec.Helm.ValuesFrom[:1] })
		}, true},
	} {
		step.change()
		asked++
		at := metav1.Now().String() + string(rune('a'+asked))
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
			d.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": at}
		})
		now := r.until(t, key, step.what, func(d *v1alpha1.BundleDeployment) bool {
			return d.Status.LastHandledReconcileAt == at && isReady(d)
		}).Status.Plan
		if moved := now.Digest != plan.Digest; moved != step.moves {
			t.Errorf("%s: the digest of the plan moved: %v, want %v", step.what, moved, step.moves)
		}
		if told := now.Content != ""; told != (step.what == "no Secret") {
			t.Errorf("%s: the content is told: %v", step.what, told)
		}
		plan = now
	}
}
