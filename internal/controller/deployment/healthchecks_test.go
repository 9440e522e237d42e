// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestHealthCheckExprs evaluates health by an annotation of a ConfigMap.
func TestHealthCheckExprs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")})
	expressions := func(failed string) func(*v1alpha1.BundleDeployment) {
		return func(d *v1alpha1.BundleDeployment) {
			d.Spec.Health.Expressions = []v1alpha1.HealthExpression{{
				APIVersion: "v1", Kind: "ConfigMap", Failed: failed,
				Current: `metadata.name == "b" || metadata.?annotations[?"state"].orValue("") == "done"`,
			}}
		}
	}
	key := r.deploy(t, namespace, "app", expressions("metadata."))
	d := r.unready(t, key, v1alpha1.ReasonInvalidExpression)
	if !conditions.IsTrue(d, meta.StalledCondition) || !says("spec.health.expressions: failed of v1 ConfigMap")(d) || d.Status.Inventory.Count > 0 {
		t.Errorf("it is not Stalled, or something was installed:\n%s", describe(d))
	}
	r.edit(t, key, expressions(`metadata.?annotations[?"state"].orValue("") == "lost"`))
	r.until(t, key, "none is true", says(v1alpha1.ReasonHealthProgressing, "1 of 2 objects are not healthy: ConfigMap "+namespace+"/a: none of its expressions is true"))
	r.patch(t, aConfigMap(namespace, "a"), `{"metadata":{"annotations":{"state":"lost"}}}`)
	r.until(t, key, "it failed", says(v1alpha1.ReasonHealthFailed, "failed is true"))
	r.patch(t, aConfigMap(namespace, "a"), `{"metadata":{"annotations":{"state":"done"}}}`)
	r.ready(t, key, published.Revision)
}

// TestHealthChecks wants other objects than those of the bundle to be healthy.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace, other := r.namespace(t), r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"a.yaml": sickWorkload("", "nodeSelector: {example.org/there-is: none}"), "b.yaml": configMap("b", "1"),
	})
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Health.Checks = []v1alpha1.HealthCheck{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "gate", Namespace: other}, {APIVersion: "v1", Kind: "ConfigMap", Name: "b"},
			{APIVersion: "v1", Kind: "Namespace", Name: namespace, Namespace: "ignored"},
		}
	})
	r.until(t, key, "the gate is missing", says(v1alpha1.ReasonHealthProgressing, "1 of 3 objects are not healthy: ConfigMap "+other+"/gate: it does not exist"))
	r.create(t, aConfigMap(other, "gate"))
	d := r.ready(t, key, published.Revision)
	if !says("2 objects, the 3 of spec.health.checks are healthy")(d) || d.Status.Objects.Applied != 2 {
		t.Errorf("the message does not say what was looked at:\n%s", describe(d))
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Health.Checks = []v1alpha1.HealthCheck{{APIVersion: "example.org/v1", Kind: "Unknown", Name: "x"}}
	})
	r.until(t, key, "the kind is unknown", says("Unknown.example.org x: the cluster does not serve its kind"))
}

// TestCauseOfMissingPods names the quota that keeps workloads of several kinds from having Pods.
func TestCauseOfMissingPods(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	quota := object("v1", "ResourceQuota", namespace, "none")
	quota.Object["spec"] = map[string]any{"hard": map[string]any{"pods": "0"}}
	r.create(t, quota)
	r.eventually(t, t.Context(), "the quota is enforced", func(context.Context) (bool, string) {
		_, found, _ := unstructured.NestedMap(r.must(t, quota).Object, "status", "hard")
		return found, ""
	})
	for kind, spec := range map[string]string{
		"apps/v1/Deployment":  "{selector: {matchLabels: {app: x}}, template: TEMPLATE}",
		"apps/v1/StatefulSet": "{serviceName: x, selector: {matchLabels: {app: x}}, template: TEMPLATE}",
		"apps/v1/DaemonSet":   "{selector: {matchLabels: {app: x}}, template: TEMPLATE}",
		"batch/v1/Job":        "{template: TEMPLATE}",
	} {
		version, kind := kind[:strings.LastIndex(kind, "/")], kind[strings.LastIndex(kind, "/")+1:]
		name := strings.ToLower(kind)
		template := "{metadata: {labels: {app: x}}, spec: {restartPolicy: Always, containers: [{name: main, image: example.org/x}]}}"
		if kind == "Job" {
			template = strings.Replace(template, "Always", "Never", 1)
		}
		r.publish(t, namespace, name, "v1", fstest.MapFS{"a.yaml": file("apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " +
			strings.Replace(spec, "TEMPLATE", template, 1) + "\n")})
		key := r.deploy(t, namespace, name, nil)
		d := r.until(t, key, "the quota is named", says("exceeded quota: none"))
		t.Log(conditions.GetMessage(d, meta.ReadyCondition))
	}
}
