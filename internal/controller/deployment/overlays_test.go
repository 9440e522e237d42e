// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"crypto/x509"
	"encoding/base64"
	"slices"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestOverlays adapts a bundle that is installed: each change of an overlay is another plan of the same revision, one that
// finds nothing is a warning, and one that fails leaves what is installed.
func TestOverlays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "${size:=small}"), "b.yaml": configMap("b", "1")})
	key := r.deploy(t, namespace, "app", seldom)
	plain := r.ready(t, key, published.Revision).Status.Plan.Content

	target := &v1alpha1.ObjectSelector{Kind: "ConfigMap", Name: "a"}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Processors = []v1alpha1.Processor{
			{Patch: &v1alpha1.Patch{Patch: "data: {more: '2'}", Target: target}},
			{Patch: &v1alpha1.Patch{Patch: "a: b", Target: &v1alpha1.ObjectSelector{Kind: "Pod"}}},
			{Variables: &v1alpha1.VariablesProcessor{Values: map[string]string{"size": "large"}}},
			{Metadata: &v1alpha1.MetadataProcessor{Labels: map[string]string{"team": "x"}}},
		}
	})
	r.holds(t, namespace, "a", "large")
	adapted := r.until(t, key, "the overlays are planned", func(d *v1alpha1.BundleDeployment) bool {
		return isReady(d) && d.Status.ObservedGeneration == d.Generation && d.Status.Plan.Content != plain
	})
	if want := "spec.processors[1].patch selects no object (kind Pod)"; !slices.Contains(adapted.Status.Warnings, want) {
		t.Errorf("status.warnings are %q, want %q", adapted.Status.Warnings, want)
	}
	a := r.must(t, aConfigMap(namespace, "a"))
	if more, _, _ := unstructured.NestedString(a.Object, "data", "more"); more != "2" || a.GetLabels()["team"] != "x" {
		t.Errorf("a is %v", a.Object)
	}

	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Processors = []v1alpha1.Processor{{Patch: &v1alpha1.Patch{Patch: "[{op: remove, path: /data/nothing}]", Target: target}}}
	})
	r.until(t, key, "it is refused", says(v1alpha1.ReasonConversionFailed, "ConfigMap a: spec.processors[0].patch: operation 1 (remove /data/nothing) fails: the object has nothing there"))
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "large") // the applied revision stays

	r.edit(t, key, prefixed)
	r.until(t, key, "the names are others", func(d *v1alpha1.BundleDeployment) bool {
		return isReady(d) && d.Status.ObservedGeneration == d.Generation
	})
	r.must(t, aConfigMap(namespace, "eu-a"))
	if r.get(t, aConfigMap(namespace, "a")) {
		t.Error("what was renamed is still there")
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Processors = nil })
	r.until(t, key, "all is as it was", func(d *v1alpha1.BundleDeployment) bool {
		return isReady(d) && d.Status.ObservedGeneration == d.Generation && d.Status.Plan.Content == plain
	})
}

// prefixed has only the processor that begins all names with eu-.
func prefixed(d *v1alpha1.BundleDeployment) {
	d.Spec.Processors = []v1alpha1.Processor{{Names: &v1alpha1.NamesProcessor{Prefix: "eu-"}}}
}

// TestPrefixedOperator: webhooks of an operator with other names are served and trusted.
func TestPrefixedOperator(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", both(quick, prefixed))
	r.ready(t, key, published.Revision)
	serving := r.secret(t, namespace, "eu-"+servingSecret)
	if serving == nil || r.secret(t, namespace, servingSecret) != nil {
		t.Fatal("the Secret of the certificate does not have the prefix")
	}
	hook := r.must(t, object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "eu-check."+group))
	hooks, _, _ := unstructured.NestedSlice(hook.Object, "webhooks")
	config := hooks[0].(map[string]any)["clientConfig"].(map[string]any) //nolint:errcheck,forcetypeassert // of the API server
	service, _, _ := unstructured.NestedString(config, "service", "name")
	r.must(t, object("v1", "Service", namespace, service))
	bundle, err := base64.StdEncoding.DecodeString(config["caBundle"].(string)) //nolint:forcetypeassert // of the API server
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := leaf(t, serving).Verify(x509.VerifyOptions{Roots: roots, DNSName: service + "." + namespace + ".svc"}); err != nil {
		t.Error(err)
	}
	d := r.must(t, object("apps/v1", "Deployment", namespace, "eu-gadgets"))
	volumes, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "volumes")
	if secret, _, _ := unstructured.NestedString(volumes[0].(map[string]any), "secret", "secretName"); secret != serving.Name { //nolint:errcheck,forcetypeassert // of the API server
		t.Errorf("the Deployment mounts %q", secret)
	}
	r.remove(t, key)
}
