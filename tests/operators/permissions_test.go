// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// enduring are the operators that are upgraded with the permissions of their first version: for all namespaces, with and without webhooks, and
// for one namespace. The release suite takes all of them.
func enduring() []string {
	if os.Getenv("SATCHEL_FULL") == "" {
		return []string{"cockroachdb"}
	}
	return []string{"cockroachdb", "node-maintenance-operator", "prometheus"}
}

// TestPermissionsSurviveUpgradesOfOperators: what `satchel rbac` prints for the first version carries three upgrades. Each of
// them renames the roles, which OLM's naming derives from the CSV, and adds a ConfigMap with a name of its own: of these only
// the roles need new permissions, which plan and status print, and applying them suffices.
func TestPermissionsSurviveUpgradesOfOperators(t *testing.T) {
	bundles := corpus(t)
	r := newRig(t)
	for _, b := range bundles {
		if !slices.Contains(enduring(), b.name) {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			d := &deployment{rig: r, bundle: b, namespace: controlplane.NewNamespace(t, r.cp)}
			first := b.changed(t, "settings-0", func(_ *testing.T, csv []byte) []byte { return csv })
			d.begin(t, first)
			d.create(t)
			d.ready(t, d.publish(t, b.version, os.DirFS(first)))
			installed := render(t, os.DirFS(first), d.object()).Objects
			for version := 1; version <= 3; version++ {
				next := b.changed(t, fmt.Sprintf("settings-%d", version), func(t *testing.T, csv []byte) []byte { return renamed(t, csv, version) })
				revision := d.publish(t, fmt.Sprintf("v%d", version), os.DirFS(next))
				d.reconcile(t)
				d.refused(t)
				d.grantMissing(t, "clusterroles", "clusterrolebindings", "roles", "rolebindings")
				d.reconcile(t)
				d.ready(t, revision)
				installed = append(installed, render(t, os.DirFS(next), d.object()).Objects...)
			}
			d.remove(t.Context(), t)
			r.forget(t, installed)
		})
	}
}

// renamed is another version of a CSV: with another name, and a changed Deployment.
func renamed(t *testing.T, content []byte, version int) []byte {
	t.Helper()
	csv := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &csv.Object); err != nil {
		t.Fatal(err)
	}
	csv.SetName(fmt.Sprintf("next%d-%s", version, csv.GetName()))
	change(t, csv.Object, fmt.Sprintf("99%d.0.0", version), "spec", "version")
	deployments, _, _ := unstructured.NestedSlice(csv.Object, "spec", "install", "spec", "deployments")
	first, _ := deployments[0].(map[string]any)
	change(t, first, fmt.Sprint(version), "spec", "template", "metadata", "annotations", "example.org/changed")
	change(t, csv.Object, deployments, "spec", "install", "spec", "deployments")
	out, err := yaml.Marshal(csv.Object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPermissionsSurviveUpgradesOfAKustomization: two upgrades give a generated ConfigMap another name, and need nothing. The
// third one renames a generated Secret and a PriorityClass, for which permissions are by name.
func TestPermissionsSurviveUpgradesOfAKustomization(t *testing.T) {
	r := newRig(t)
	d := &deployment{rig: r, bundle: bundle{name: "shop"}, namespace: controlplane.NewNamespace(t, r.cp)}
	dir := kustomization(t, "red", "first", d.namespace+"-1")
	d.begin(t, dir)
	d.create(t)
	d.ready(t, d.publish(t, "v0", os.DirFS(dir)))
	for _, colour := range []string{"green", "blue"} {
		d.ready(t, d.publish(t, colour, os.DirFS(kustomization(t, colour, "first", d.namespace+"-1"))))
	}
	revision := d.publish(t, "v3", os.DirFS(kustomization(t, "yellow", "second", d.namespace+"-2")))
	d.reconcile(t)
	d.refused(t)
	d.grantMissing(t, "secrets", "priorityclasses")
	d.reconcile(t)
	d.ready(t, revision)
	d.remove(t.Context(), t)
}

// TestStrictPermissionsNameEachObject: with --strict the same upgrade is refused, because the ConfigMap has another name.
func TestStrictPermissionsNameEachObject(t *testing.T) {
	r := newRig(t)
	d := &deployment{rig: r, bundle: bundle{name: "shop"}, namespace: controlplane.NewNamespace(t, r.cp)}
	dir := kustomization(t, "red", "first", d.namespace+"-1")
	d.begin(t, dir, "--strict")
	d.create(t)
	d.ready(t, d.publish(t, "v0", os.DirFS(dir)))
	revision := d.publish(t, "green", os.DirFS(kustomization(t, "green", "first", d.namespace+"-1")))
	d.reconcile(t)
	if message := d.refused(t); !strings.Contains(message, "configmaps (shop-settings-") {
		t.Errorf("the refusal is: %s", message)
	}
	union, code := d.satchel(t, d.onCluster("rbac", d.name, "--strict")...)
	if code != kit.ExitOK {
		t.Fatalf("rbac of the deployment: exit %d", code)
	}
	d.grant(t, manifests(t, union))
	d.reconcile(t)
	d.ready(t, revision)
	d.remove(t.Context(), t)
}

// begin grants the ServiceAccount what `satchel rbac` prints for the first version.
func (d *deployment) begin(t *testing.T, dir string, flags ...string) {
	t.Helper()
	args := append([]string{"rbac", dir, "--install-namespace", d.namespace, "--name", d.name, "--service-account", installer}, flags...)
	if d.own {
		args = append(args, "--watch-namespace", d.namespace)
	}
	out, code := d.satchel(t, args...)
	if code != kit.ExitOK {
		t.Fatalf("satchel %v: exit code %d", args, code)
	}
	d.grant(t, manifests(t, out))
}

// onCluster adds the flags that choose the cluster and the namespace.
func (d *deployment) onCluster(args ...string) []string {
	return append(args, "--kubeconfig", d.cp.KubeconfigPath(), "-n", d.namespace)
}

// grantMissing applies the YAML that plan prints, which is what status and rbac print, too. Only the given resources may be
// in it.
func (d *deployment) grantMissing(t *testing.T, only ...string) {
	t.Helper()
	plan, code := d.satchel(t, d.onCluster("plan", d.name)...)
	_, printed, found := strings.Cut(plan, "--missing prints it:\n")
	if code != kit.ExitError || !found { // the plan is refused
		t.Fatalf("plan prints no missing permissions, exit %d: %s", code, plan)
	}
	alone, code := d.satchel(t, d.onCluster("rbac", d.name, "--missing")...)
	if code != kit.ExitOK || alone != printed {
		t.Errorf("rbac --missing: exit %d, and prints\n%s\nwhere plan prints\n%s", code, alone, printed)
	}
	if status, code := d.satchel(t, d.onCluster("status", d.name)...); code != kit.ExitNo || !strings.HasSuffix(status, printed) {
		t.Errorf("status: exit %d, and does not print what plan does:\n%s", code, status)
	}
	added := manifests(t, printed)
	for _, object := range added {
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if len(rule.ResourceNames) == 0 || slices.ContainsFunc(rule.Resources, func(of string) bool { return !slices.Contains(only, of) }) {
				t.Errorf("%s %s grants %v, want permissions on %v by name", object.GetKind(), object.GetName(), rule, only)
			}
		}
	}
	d.grant(t, added)
}

// kustomization writes a kustomization with generators to a folder, and returns its name.
func kustomization(t *testing.T, colour, password, class string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"kustomization.yaml": fmt.Sprintf(`
resources: [all.yaml]
configMapGenerator: [{name: shop-settings, literals: [colour=%s]}]
secretGenerator: [{name: shop-login, literals: [password=%s]}]
`, colour, password),
		"all.yaml": fmt.Sprintf(`
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: %s}
value: 1
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: shop
        image: registry.example.org/shop:1
        envFrom: [{configMapRef: {name: shop-settings}}, {secretRef: {name: shop-login}}]
`, class),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
