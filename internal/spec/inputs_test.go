// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
)

var (
	secretDB = spec.InputRef{Kind: "Secret", Name: "db"}
	mapBase  = spec.InputRef{Kind: "ConfigMap", Name: "base"}
)

// charted is a deployment with values from a ConfigMap, and a single value from a Secret.
func charted() *v1alpha1.BundleDeployment {
	return &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"},
		Spec: v1alpha1.BundleDeploymentSpec{Helm: &v1alpha1.HelmOptions{
			Values: &apiextensionsv1.JSON{Raw: []byte(`{"tag":"v2"}`)},
			ValuesFrom: []v1alpha1.ValuesReference{
				{Kind: "ConfigMap", Name: "base"},
				{Kind: "Secret", Name: "db", ValuesKey: "password", TargetPath: "db.password"},
			},
		}},
	}
}

func held() spec.Contents {
	return spec.Contents{
		mapBase:  {"values.yaml": "tag: v1\ndb: {host: a}"},
		secretDB: {"password": "s3cr3t", "other": "x"},
	}
}

func TestHelmValues(t *testing.T) {
	got, err := spec.HelmValues(charted(), held())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"tag": "v2", "db": map[string]any{"host": "a", "password": "s3cr3t"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	broken := held()
	broken[mapBase]["values.yaml"] = "- s3cr3t"
	_, err = spec.HelmValues(charted(), broken)
	if err == nil || err.Error() != "configmap team/base, key values.yaml (spec.helm.valuesFrom[0]): line 1: values are a mapping of names to values, and this is not one" {
		t.Error(err)
	}
}

// TestVariables: later inputs win, only keys that are valid names of variables count, and a missing input has none.
func TestVariables(t *testing.T) {
	d := &v1alpha1.BundleDeployment{Spec: v1alpha1.BundleDeploymentSpec{Processors: []v1alpha1.Processor{{Patch: &v1alpha1.Patch{}}, {Variables: &v1alpha1.VariablesProcessor{
		ValuesFrom: []v1alpha1.VariablesReference{{Kind: "ConfigMap", Name: "base"}, {Kind: "Secret", Name: "db"}, {Kind: "Secret", Name: "none", Optional: true}},
	}}}}}
	contents := spec.Contents{mapBase: {"a": "1", "b": "1", "no.name": "1", "0": "1"}, secretDB: {"b": "2"}}
	if err := spec.Lacking("team", spec.Inputs(d), contents); err != nil {
		t.Error(err)
	}
	if err := spec.Lacking("team", spec.Inputs(d), spec.Contents{secretDB: {}}); err == nil || err.Error() != "configmap team/base does not exist: create it, or correct spec.processors[1].variables.valuesFrom[0]" {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, spec.Variables(d.Spec.Processors[1].Variables, contents)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, spec.Conversion(d, spec.Given{Contents: contents}, convert.Limits{}).Overlay.Processors[1].Variables.Read); diff != "" {
		t.Error(diff)
	}
	if got := spec.Scrubber(d, spec.Inputs(d), spec.Contents{secretDB: {"x": "s3cr3t"}}).Text("s3cr3t"); got != "(redacted)" {
		t.Error(got)
	}
}

func TestLacking(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.BundleDeployment, spec.Contents)
		want   string
	}{
		"nothing": {reason: "all is there", change: func(*v1alpha1.BundleDeployment, spec.Contents) {}},
		"object": {reason: "the message names it, and the field", change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { delete(c, secretDB) },
			want: "secret team/db does not exist: create it, or correct spec.helm.valuesFrom[1]"},
		"key": {reason: "the message names the key, and none of the others", change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { delete(c[secretDB], "password") },
			want: `secret team/db has no key "password": add it, or correct spec.helm.valuesFrom[1]`},
		"both": {reason: "all at once", change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { clear(c) },
			want: "configmap team/base does not exist: create it, or correct spec.helm.valuesFrom[0]\nsecret team/db does not exist: create it, or correct spec.helm.valuesFrom[1]"},
		"optional": {reason: "it may be missing", change: func(d *v1alpha1.BundleDeployment, c spec.Contents) {
			d.Spec.Helm.ValuesFrom[1].Optional = true
			delete(c, secretDB)
		}},
		"optional key": {reason: "it may be missing, too", change: func(d *v1alpha1.BundleDeployment, c spec.Contents) {
			d.Spec.Helm.ValuesFrom[1].Optional = true
			delete(c[secretDB], "password")
		}},
	} {
		d, c := charted(), held()
		tc.change(d, c)
		err, got := spec.Lacking("team", spec.Inputs(d), c), ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s (%s): %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestInputsDigest: the digest changes exactly when the used parts of the inputs do.
func TestInputsDigest(t *testing.T) {
	digest := func(d *v1alpha1.BundleDeployment, c spec.Contents, key string) string {
		got, err := spec.DigestInputs(spec.Inputs(d), c, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	was := digest(charted(), held(), "key")
	for name, tc := range map[string]struct {
		change func(*v1alpha1.BundleDeployment, spec.Contents)
		moves  bool
	}{
		"nothing":              {change: func(*v1alpha1.BundleDeployment, spec.Contents) {}},
		"another key":          {change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { c[secretDB]["other"] = "y" }},
		"an object of others":  {change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { c[spec.InputRef{Kind: "Secret", Name: "z"}] = nil }},
		"values of the spec":   {change: func(d *v1alpha1.BundleDeployment, _ spec.Contents) { d.Spec.Helm.Values = nil }},
		"the Secret":           {change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { c[secretDB]["password"] = "y" }, moves: true},
		"the ConfigMap":        {change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { c[mapBase]["values.yaml"] = "" }, moves: true},
		"the key goes":         {change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { delete(c[secretDB], "password") }, moves: true},
		"empty is not missing": {change: func(_ *v1alpha1.BundleDeployment, c spec.Contents) { c[secretDB]["password"] = "" }, moves: true},
		"one reference less": {change: func(d *v1alpha1.BundleDeployment, _ spec.Contents) {
			d.Spec.Helm.ValuesFrom = d.Spec.Helm.ValuesFrom[:1]
		}, moves: true},
	} {
		d, c := charted(), held()
		tc.change(d, c)
		if moved := digest(d, c, "key") != was; moved != tc.moves {
			t.Errorf("%s: the digest moved: %v, want %v", name, moved, tc.moves)
		}
	}
	if digest(charted(), held(), "another key") == was {
		t.Error("the digest is no secret of the installation")
	}
	if digest(&v1alpha1.BundleDeployment{}, nil, "key") != "" {
		t.Error("no inputs have a digest")
	}
}

// TestI8Scrubber: used values of Secrets are removed; public names and values of ConfigMaps stay.
func TestI8Scrubber(t *testing.T) {
	c := held()
	c[secretDB]["password"] = "team-s3cr3t"
	c[secretDB]["other"] = "unused-key"
	got := spec.Scrubber(charted(), spec.Inputs(charted()), c).Text("team/shop: team-s3cr3t, unused-key, v1")
	if want := "team/shop: (redacted), unused-key, v1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c[secretDB]["password"] = "shop"
	if got := spec.Scrubber(charted(), spec.Inputs(charted()), c).Text("team/shop"); got != "team/shop" {
		t.Error(got)
	}
}

func TestDataOf(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("x"))
	for name, tc := range map[string]struct {
		object map[string]any
		want   map[string]string
		fails  string
	}{
		"Secret":     {object: map[string]any{"kind": "Secret", "data": map[string]any{"a": encoded}}, want: map[string]string{"a": "x"}},
		"ConfigMap":  {object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "y"}, "binaryData": map[string]any{"b": encoded}}, want: map[string]string{"a": "y", "b": "x"}},
		"empty":      {object: map[string]any{"kind": "ConfigMap"}, want: map[string]string{}},
		"no base64":  {object: map[string]any{"kind": "Secret", "metadata": map[string]any{"namespace": "n", "name": "s"}, "data": map[string]any{"a": "s3cr3t!"}}, fails: "secret n/s, key a: this is not base64"},
		"no strings": {object: map[string]any{"kind": "Secret", "metadata": map[string]any{"namespace": "n", "name": "s"}, "data": map[string]any{"a": int64(1)}}, fails: "has data that are not strings"},
	} {
		got, err := spec.DataOf(&unstructured.Unstructured{Object: tc.object})
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.fails != "") || err != nil && (!strings.Contains(err.Error(), tc.fails) || strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}
