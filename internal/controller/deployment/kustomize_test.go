// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestKustomization installs an overlay that is based on a folder beside it, and upgrades it; what
// it may not name keeps the old one.
func TestKustomization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	bundle := func(overlay string) fstest.MapFS {
		return fstest.MapFS{
			"base/kustomization.yaml": file("resources: [one.yaml]\nconfigMapGenerator: [{name: made, literals: [a=b]}]\ngeneratorOptions: {disableNameSuffixHash: true}\n"),
			"base/one.yaml":           configMap("one", "1"),
			"eu/kustomization.yaml":   file("resources: [../base]\n" + overlay),
		}
	}
	first := r.publish(t, namespace, "app", "v1", bundle("namePrefix: eu-\n"))
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) { d.Spec.Path = "eu" })
	d := r.ready(t, key, first.Revision)
	if d.Status.Format != v1alpha1.FormatKustomize {
		t.Errorf("status.format is %q", d.Status.Format)
	}
	r.must(t, aConfigMap(namespace, "eu-one"))
	r.must(t, aConfigMap(namespace, "eu-made"))
	second := r.publish(t, namespace, "app", "v2", bundle("nameSuffix: -eu\n"))
	r.ready(t, key, second.Revision)
	r.must(t, aConfigMap(namespace, "one-eu"))
	if r.get(t, aConfigMap(namespace, "eu-one")) {
		t.Error("what was renamed is still there")
	}
	r.publish(t, namespace, "app", "v3", bundle("components: ['https://example.org/component']\n"))
	r.until(t, key, "it is refused", says(v1alpha1.ReasonConversionFailed, "eu/kustomization.yaml", "which is not in the bundle"))
	r.must(t, aConfigMap(namespace, "one-eu"))
}
