// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// of is a registry+v1 bundle of a package that requires, in metadata/dependencies.yaml, what is given.
func of(name, version, dependencies string) fstest.MapFS {
	files := fstest.MapFS{
		"metadata/annotations.yaml": file("annotations: {operators.operatorframework.io.bundle.package.v1: " + name + "}\n"),
		"manifests/clusterserviceversion.yaml": file(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: ` + name + `.v` + version + `}
spec:
  version: ` + version + `
  installModes: [{type: AllNamespaces, supported: true}]
  install: {strategy: deployment, spec: {deployments: []}}
`),
		"manifests/settings.yaml": configMap(name+"-settings", version),
	}
	if dependencies != "" {
		files["metadata/dependencies.yaml"] = file("dependencies: [" + dependencies + "]\n")
	}
	return files
}

// TestRequirements installs a bundle that needs a package, which is installed later,
// and before that with requirements that only warn.
func TestRequirements(t *testing.T) {
	r := newRig(t)
	namespace, other := r.namespace(t), r.namespace(t)
	const needs = `{type: olm.package, value: {packageName: base, version: ">=1.2.0 <2.0.0"}}`
	seldom := func(d *v1alpha1.BundleDeployment) { d.Spec.RetryInterval = v1alpha1.Duration{Duration: time.Hour} }

	published := r.publish(t, namespace, "top", "v1", of("top", "1.0.0", needs))
	top := r.deploy(t, namespace, "top", seldom)
	elsewhere := r.publish(t, other, "base", "v1", of("base", "1.2.0", ""))
	r.ready(t, r.deploy(t, other, "base", nil), elsewhere.Revision)
	d := r.unready(t, top, v1alpha1.ReasonPlanRefused)
	if said := describe(d); !strings.Contains(said, "base") || !strings.Contains(said, ">=1.2.0 <2.0.0") || !strings.Contains(said, "spec.registryV1.requirements") {
		t.Errorf("the refusal does not name the package, the versions and the way out:\n%s", said)
	}
	if d.Status.Inventory.Count > 0 || d.Status.Package != nil {
		t.Errorf("something was installed: %v, package %v", d.Status.Inventory, d.Status.Package)
	}

	tooOld := r.publish(t, namespace, "base", "v1", of("base", "1.1.9", ""))
	base := r.deploy(t, namespace, "base", nil)
	r.ready(t, base, tooOld.Revision)
	r.until(t, top, "the older version is named", func(d *v1alpha1.BundleDeployment) bool { return strings.Contains(describe(d), "1.1.9") })
	r.publish(t, namespace, "base", "v2", of("base", "1.2.0", ""))
	d = r.ready(t, top, published.Revision) // long before the hour is over
	if diff := cmp.Diff(&v1alpha1.PackageStatus{Name: "top", Version: "1.0.0"}, d.Status.Package); diff != "" {
		t.Errorf("status.package (-want +got):\n%s", diff)
	}

	warned := r.publish(t, other, "top", "v1", of("top", "1.0.0", `{type: olm.package, value: {packageName: absent, version: ">=1.0.0"}}`))
	key := r.deploy(t, other, "top", func(d *v1alpha1.BundleDeployment) {
		d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{Requirements: v1alpha1.Warn}
	})
	d = r.ready(t, key, warned.Revision)
	if !strings.Contains(strings.Join(d.Status.Warnings, "\n"), "absent") {
		t.Errorf("the warnings do not name what is missing: %q", d.Status.Warnings)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.RegistryV1.Requirements = v1alpha1.EnforcementNone })
	r.until(t, key, "no warning", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.ObservedGeneration == d.Generation && !strings.Contains(strings.Join(d.Status.Warnings, "\n"), "absent")
	})
}
