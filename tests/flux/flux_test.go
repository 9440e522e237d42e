// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

const (
	satchel   = "satchel.dev/v1alpha1"
	kustomize = "kustomize.toolkit.fluxcd.io/v1"
)

// permissions are a ServiceAccount and its binding, as the guide has them.
const permissions = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: installer
  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: installer
  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: installer, namespace: platform}]
`

func deploymentOf(source string) string {
	return strings.ReplaceAll(`apiVersion: satchel.dev/v1alpha1
kind: BundleDeployment
metadata: {name: SOURCE}
spec:
  sourceRef: {kind: BundleSource, name: SOURCE}
  format: plain+v0
  serviceAccountName: installer
  timeout: 2s
`, "SOURCE", source)
}

// kustomization delivers the ExternalArtifact of its name, and waits with the expressions that config/flux ships.
func (c cluster) kustomization(name string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(installation.Root(), "config", "flux", "health-check-exprs.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		c.t.Fatal(err)
	}
	object.SetName(name)
	object.SetNamespace(c.namespace)
	spec := object.Object["spec"].(map[string]any) //nolint:errcheck,forcetypeassert // the file has it
	for field, value := range map[string]any{
		"interval": "10m", "timeout": "10m", "prune": true, "wait": true, "path": "./", "targetNamespace": c.namespace,
		"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": name},
	} {
		spec[field] = value
	}
	c.create(object)
}

// TestFluxDelivers has Flux's own controller apply BundleDeployments from an artifact of Satchel, wait for them, and prune them.
func TestFluxDelivers(t *testing.T) {
	c := newCluster(t)
	c.publish("app", map[string]string{"app.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"})
	c.external("good", c.publish("good", map[string]string{"permissions.yaml": permissions, "app.yaml": deploymentOf("app")}))
	c.kustomization("good")
	c.eventually("the Kustomization is Ready", func() bool { return strings.HasPrefix(c.ready(kustomize, "Kustomization", "good"), "True") })
	if got := c.ready(satchel, v1alpha1.BundleDeploymentKind, "app"); !strings.HasPrefix(got, "True") {
		t.Errorf("Flux waited, and the BundleDeployment is %s", got)
	}
	if _, found := c.get("v1", "ConfigMap", "app"); !found {
		t.Error("the bundle is not installed")
	}
	c.failsEarly()
	c.prunes()
}

// failsEarly delivers a bundle that never becomes healthy: the Kustomization fails when the BundleDeployment does, long before
// its own timeout.
func (c cluster) failsEarly() {
	c.t.Helper()
	c.publish("sick", map[string]string{"sick.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: sick}
spec:
  selector: {matchLabels: {app: sick}}
  template:
    metadata: {labels: {app: sick}}
    spec: {nodeSelector: {no: node}, containers: [{name: sick, image: example.org/sick}]}
`})
	c.external("bad", c.publish("bad", map[string]string{"sick.yaml": deploymentOf("sick")}))
	c.kustomization("bad")
	c.eventually("the BundleDeployment is unhealthy", func() bool {
		return strings.HasPrefix(c.ready(satchel, v1alpha1.BundleDeploymentKind, "sick"), "False HealthFailed")
	})
	unhealthy := time.Now()
	c.eventually("the Kustomization fails early", func() bool {
		return strings.HasPrefix(c.ready(kustomize, "Kustomization", "bad"), "False HealthCheckFailed")
	})
	c.t.Logf("the Kustomization failed %s after the BundleDeployment: %s", time.Since(unhealthy).Round(10*time.Millisecond), c.ready(kustomize, "Kustomization", "bad"))
}

// prunes deletes the Kustomization: the BundleDeployment goes with its objects, because its permissions stay.
func (c cluster) prunes() {
	c.t.Helper()
	delivered, _ := c.get(kustomize, "Kustomization", "good")
	began := time.Now()
	if err := c.admin.Delete(c.t.Context(), delivered); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the BundleDeployment is removed", func() bool {
		_, found := c.get(satchel, v1alpha1.BundleDeploymentKind, "app")
		return !found
	})
	c.t.Logf("pruned after %s", time.Since(began).Round(10*time.Millisecond))
	if _, found := c.get("v1", "ConfigMap", "app"); found {
		c.t.Error("the object of the bundle is left behind")
	}
	for kind, version := range map[string]string{"ServiceAccount": "v1", "RoleBinding": "rbac.authorization.k8s.io/v1"} {
		if _, found := c.get(version, kind, "installer"); !found {
			c.t.Errorf("the %s was pruned", kind)
		}
	}
}
