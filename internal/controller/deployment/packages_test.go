// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
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
	if d.Status.Inventory.Count > 0 || d.Status.Healthy.Package != nil {
		t.Errorf("something was installed: %v, package %v", d.Status.Inventory, d.Status.Healthy.Package)
	}

	tooOld := r.publish(t, namespace, "base", "v1", of("base", "1.1.9", ""))
	base := r.deploy(t, namespace, "base", nil)
	r.ready(t, base, tooOld.Revision)
	r.until(t, top, "the older version is named", func(d *v1alpha1.BundleDeployment) bool { return strings.Contains(describe(d), "1.1.9") })
	r.publish(t, namespace, "base", "v2", of("base", "1.2.0", ""))
	d = r.ready(t, top, published.Revision) // long before the hour is over
	if diff := cmp.Diff(&v1alpha1.PackageStatus{Name: "top", Version: "1.0.0"}, d.Status.Healthy.Package); diff != "" {
		t.Errorf("status.healthy.package (-want +got):\n%s", diff)
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

// TestBreaksDependent refuses an upgrade that takes a package or a version of a kind from another deployment: C50. The status says what
// others require, so that another process knows it, too; the upgrade goes on once they do not require it any more.
func TestBreaksDependent(t *testing.T) {
	r := newRig(t)
	namespace := r.namespace(t)
	group := namespace + ".example.com"
	versions := func(version, more string) fstest.MapFS {
		files := of("base", version, "")
		files["manifests/boxes.yaml"] = file(fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Box, listKind: BoxList, plural: boxes, singular: box}
  versions:%[2]s
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, group, more))
		return files
	}
	older := versions("1.2.0", "\n  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}")
	first := r.publish(t, namespace, "base", "v1", older)
	base := r.deploy(t, namespace, "base", func(d *v1alpha1.BundleDeployment) {
		d.Spec.RetryInterval = v1alpha1.Duration{Duration: time.Hour}
		d.Spec.Apply.CRDs = &v1alpha1.CRDOptions{UpgradeSafety: v1alpha1.EnforcementNone}
	})
	r.ready(t, base, first.Revision)
	needs := r.publish(t, namespace, "top", "v1", of("top", "1.0.0", `{type: olm.package, value: {packageName: base, version: "<2.0.0"}}, {type: olm.gvk, value: {group: `+group+`, version: v1beta1, kind: Box}}`))
	top := r.deploy(t, namespace, "top", nil)
	d := r.ready(t, top, needs.Revision)
	want := []v1alpha1.BundleRequirement{{Group: group, Version: "v1beta1", Kind: "Box"}, {Package: "base", Range: "<2.0.0"}}
	if diff := cmp.Diff(want, d.Status.Healthy.Requires); diff != "" {
		t.Errorf("status.healthy.requires (-want +got):\n%s", diff)
	}

	second := r.publish(t, namespace, "base", "v2", versions("2.0.0", ""))
	for _, process := range []string{"this", "the next"} {
		d = r.unready(t, base, v1alpha1.ReasonPlanRefused)
		said := describe(d)
		for _, text := range []string{"deployment top needs package base in version <2.0.0, which is not there after this plan (base 1.2.0 becomes 2.0.0)", "deployment top needs kind Box of " + group + "/v1beta1"} {
			if !strings.Contains(said, text) {
				t.Errorf("%s process does not say %q:\n%s", process, text, said)
			}
		}
		if d.Status.Healthy.Package.Version != "1.2.0" || d.Status.Applied.Revision != first.Revision {
			t.Errorf("%s process installed %s", process, d.Status.Applied.Revision)
		}
		r.drive(t, base, nil).reconcile(t)
	}
	later := r.publish(t, namespace, "top", "v2", of("top", "1.1.0", `{type: olm.package, value: {packageName: base, version: ">=1.0.0"}}`))
	r.ready(t, top, later.Revision)
	d = r.ready(t, base, second.Revision) // long before the hour is over
	if d.Status.Healthy.Package.Version != "2.0.0" {
		t.Errorf("version %s is installed", d.Status.Healthy.Package.Version)
	}
}
