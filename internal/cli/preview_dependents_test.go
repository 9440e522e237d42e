// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// aPackage is a folder with a registry+v1 bundle that requires, in metadata/dependencies.yaml, what is given.
func aPackage(t *testing.T, name, version, dependencies string) string {
	t.Helper()
	return writeFiles(t, map[string]string{
		"metadata/annotations.yaml":  "annotations: {operators.operatorframework.io.bundle.package.v1: " + name + "}\n",
		"metadata/dependencies.yaml": "dependencies: [" + dependencies + "]\n",
		"manifests/settings.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
		"manifests/clusterserviceversion.yaml": `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: ` + name + `.v` + version + `}
spec:
  version: ` + version + `
  installModes: [{type: AllNamespaces, supported: true}]
  install: {strategy: deployment, spec: {deployments: []}}
`})
}

// TestPlanNamesProviders: the plan names the packages of catalogs that provide what it lacks, as the condition of the controller does
// (C50). A catalog that cannot be read is left out, and named.
func TestPlanNamesProviders(t *testing.T) {
	c := newCatalogCluster(t)
	platformFiles(t)
	c.Create(aDeployment(func(d *v1alpha1.BundleDeployment) { d.Status = v1alpha1.BundleDeploymentStatus{} }))
	folder := aPackage(t, "portal", "2.0.0", `{type: olm.package, value: {packageName: database, version: ">=1.0.0"}},
		{type: olm.package, value: {packageName: absent, version: ">=1.0.0"}}, {type: olm.gvk, value: {group: cache.example.org, version: v1, kind: Cache}}`)
	got := c.Satchel("plan", "podinfo", "--path", folder)
	c.Want(got, kit.ExitError, "the bundle needs package database", "install what serves group \"cache.example.org\"")
	c.without(got, "of catalog", "not searched")

	c.serve("platform", "platform")
	c.Create(aCatalog(func(o *v1alpha1.BundleCatalog) {
		o.Name = "broken"
		o.Status.URLs.Base = "http://127.0.0.1:1/catalogs/demo/broken"
	}))
	got = c.Satchel("plan", "podinfo", "--path", folder)
	c.Want(got, kit.ExitError, "package database of catalog platform", "satchel resolve database --with-dependencies -o yaml prints the manifest",
		"install package cache of catalog platform, which provides it", "not searched for a package that provides what is missing: catalog broken")
	c.without(got, "package absent of catalog")
}

// TestPlanBreaksDependent: the plan names the deployments that would lose what they require, as the condition of the controller does.
// What is installed on this cluster is found without an inventory as well, since the cluster is asked for its identity.
func TestPlanBreaksDependent(t *testing.T) {
	c := newTestCluster(t)
	var system corev1.Namespace
	if err := c.AnyClient().Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		t.Fatal(err)
	}
	c.Create(aDeployment(func(d *v1alpha1.BundleDeployment) {
		d.Status = v1alpha1.BundleDeploymentStatus{Healthy: v1alpha1.HealthyRevision{Package: &v1alpha1.PackageStatus{Name: "base", Version: "1.2.0"}}}
	}))
	c.Create(aDeployment(called("web"), func(d *v1alpha1.BundleDeployment) {
		d.Status.Inventory = &v1alpha1.Inventory{Target: string(system.UID)}
		d.Status.Healthy.Requires = []v1alpha1.BundleRequirement{{Package: "base", Range: "<2.0.0"}}
	}))
	const broken = "deployment web needs package base in version <2.0.0, which is not there after this plan (base 1.2.0 becomes 2.0.0)"
	c.Want(c.Satchel("plan", "podinfo", "--path", aPackage(t, "base", "2.0.0", "")), kit.ExitError, broken)
	c.without(c.Satchel("plan", "podinfo", "--path", aPackage(t, "base", "1.3.0", "")), broken)
}

// without checks that the output does not contain the strings.
func (c testCluster) without(got outcome, texts ...string) {
	c.T.Helper()
	for _, text := range texts {
		if strings.Contains(got.Out+got.Err, text) {
			c.T.Errorf("%q is in: %s", text, got)
		}
	}
}
