// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// folder writes files into a folder of the test.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func configMapText(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: " + value + "}\n"
}

// runs is a command line of run that reaches the upload server directly.
func (r *rig) runs(name, what string, more ...string) []string {
	return append([]string{"run", name, what, "--upload-address", r.Uploads}, more...)
}

// versions are the resourceVersions of what a run made.
func (r *rig) versions(t *testing.T, namespace, name string) [2]string {
	t.Helper()
	var s v1alpha1.BundleSource
	var d v1alpha1.BundleDeployment
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := r.Admin.Get(t.Context(), key, &s); err != nil {
		t.Fatal(err)
	}
	if err := r.Admin.Get(t.Context(), key, &d); err != nil {
		t.Fatal(err)
	}
	return [2]string{s.ResourceVersion, d.ResourceVersion}
}

// TestRunFolder runs a folder, runs it again, changes it, breaks it, fixes it, and cleans up.
func TestRunFolder(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	dir := folder(t, map[string]string{"manifests/a.yaml": configMapText("first", "one"), "notes.txt": "x", ".satchelignore": "*.txt\n"})
	r.satchel(t, namespace, r.runs("app", dir)...).says(t, 0, "1 file, ", "BundleSource "+namespace+"/app: created\n", "Uploaded ", "BundleDeployment app: Ready")
	if !r.holds(t, namespace, "first") {
		t.Error("nothing was installed")
	}
	before := r.versions(t, namespace, "app")
	again := r.satchel(t, namespace, r.runs("app", dir)...)
	again.says(t, 0, "BundleSource "+namespace+"/app: unchanged\n", "BundleDeployment "+namespace+"/app: unchanged\n", "Ready")
	if strings.Contains(again.err, "Uploaded") || r.versions(t, namespace, "app") != before {
		t.Errorf("running it again sent or wrote something: %v, %v", before, r.versions(t, namespace, "app"))
	}

	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "manifests/a.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(configMapText("second", "two"))
	r.satchel(t, namespace, r.runs("app", dir)...).says(t, 0, "app: changed\n", "BundleDeployment app: Ready")
	if r.holds(t, namespace, "first") || !r.holds(t, namespace, "second") {
		t.Error("the change is not applied")
	}
	write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [}\n")
	r.satchel(t, namespace, r.runs("app", dir, "--timeout", "60s")...).says(t, 1, "manifests/a.yaml", "What to do: ", "status app -n "+namespace)
	if !r.holds(t, namespace, "second") {
		t.Error("what ran is gone")
	}
	write(configMapText("second", "three"))
	r.satchel(t, namespace, r.runs("app", dir)...).says(t, 0, "BundleDeployment app: Ready")

	r.satchel(t, namespace, "delete", "app", "--yes").says(t, 0, "BundleDeployment app: gone\n", "BundleSource app: gone\n")
	if r.holds(t, namespace, "second") {
		t.Error("the ConfigMap stayed")
	}
	r.satchel(t, namespace, "delete", "app", "--yes").says(t, 2, `there is no BundleDeployment "app"`)
	if left, _ := filepath.Glob(filepath.Join(r.Dir, "data/artifacts/bundlesource", namespace, "*")); len(left) > 0 {
		t.Errorf("stored is still %v", left)
	}
}

// TestRunWithAccountOfItsOwn creates a ServiceAccount with the least permissions, and removes it with the rest.
func TestRunWithAccountOfItsOwn(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.CP)
	dir := folder(t, map[string]string{"a.yaml": configMapText("own", "one")})
	r.satchel(t, namespace, r.runs("app", dir)...).says(t, 2, "there is no ServiceAccount "+namespace+"/installer", "--create-service-account")
	r.satchel(t, namespace, "delete", "app", "--yes").says(t, 0, "BundleSource app: gone\n")
	printed := r.satchel(t, namespace, r.runs("app", dir, "--create-service-account", "--dry-run")...)
	printed.says(t, 0, "kind: ServiceAccount\n", "kind: BundleSource\n", "kind: BundleDeployment\n", "bundlesources/upload")
	r.satchel(t, namespace, r.runs("app", dir, "--create-service-account", "--cleanup")...).says(t, 0,
		"ServiceAccount "+namespace+"/installer: created\n", "BundleDeployment app: Ready", "BundleDeployment app: gone\n", "ServiceAccount "+namespace+"/installer: gone\n")
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := r.Admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		if roles, ok := list.(*rbacv1.RoleList); ok && len(roles.Items) > 0 {
			t.Errorf("left are %v", roles.Items)
		}
	}
}

// TestRunImage takes an image from its registry, and says the registry's own words when that has none.
func TestRunImage(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	image := r.Push(t, "runs:v1", configMaps("ran", 1))
	r.satchel(t, namespace, "run", "image", image, "--insecure").says(t, 0, "BundleDeployment image: Ready")
	r.satchel(t, namespace, "run", "missing", r.Registry.Host()+"/runs:none", "--insecure", "--timeout", "60s").says(t, 1, "BundleSource missing: ", "runs:none", "What to do: ")
	r.satchel(t, namespace, "delete", "missing", "--yes").says(t, 0, "gone")
	r.satchel(t, namespace, "delete", "image", "--yes").says(t, 0, "BundleDeployment image: gone\n")
}

// TestRunManifest runs a committed manifest: with a folder in place of its source, and then with the source.
func TestRunManifest(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	image := r.Push(t, "runs:manifest", configMaps("released", 1))
	manifest := filepath.Join(t.TempDir(), "web.yaml")
	text := "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: web}\nspec:\n  serviceAccountName: installer\n" +
		"  processors: [{names: {prefix: eu-}}]\n  source: {sources: [{image: {reference: \"" + image + "\", insecure: true}}]}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"a.yaml": configMapText("edited", "one")})
	r.satchel(t, namespace, "run", "-f", manifest, dir, "--upload-address", r.Uploads).says(t, 0, "BundleSource "+namespace+"/web: created\n", "BundleDeployment web: Ready")
	r.satchel(t, namespace, "tree", "web").says(t, 0, "eu-edited")
	r.satchel(t, namespace, "run", "-f", manifest).says(t, 0, "BundleSource "+namespace+"/web: changed\n", "BundleDeployment web: Ready")
	r.satchel(t, namespace, "tree", "web").says(t, 0, "eu-released")
	r.satchel(t, namespace, "run", "web", "-f", manifest, dir).says(t, 2, "with -f, run takes one folder or image in place of the source, or none")
	r.satchel(t, namespace, "delete", "web", "--yes").says(t, 0, "BundleDeployment web: gone\n")
}

// TestRunLeavesOthersAlone: objects that run did not make are neither changed nor deleted.
func TestRunLeavesOthersAlone(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	key := r.Deploy(t, namespace, "theirs", r.Push(t, "theirs:v1", configMaps("theirs", 1)), nil)
	r.Ready(t, key)
	dir := folder(t, map[string]string{"a.yaml": configMapText("mine", "one")})
	r.satchel(t, namespace, r.runs("theirs", dir)...).says(t, 2, "that run did not create")
	r.satchel(t, namespace, r.runs("theirs", dir, "--cleanup")...).says(t, 2, "that run did not create")
	r.Ready(t, key)
}

// TestRunOfATenant: a user who may edit a namespace runs with an existing ServiceAccount; one who may only view is refused.
func TestRunOfATenant(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	dir := folder(t, map[string]string{"a.yaml": configMapText("tenants", "one")})
	for name, role := range map[string]string{"editor": "admin", "viewer": "view"} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: namespace + "-" + name}}}
		if err := r.Admin.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	as := func(who string, args ...string) said {
		return r.satchel(t, namespace, append(args, "--as", namespace+"-"+who)...)
	}
	as("viewer", r.runs("app", dir)...).says(t, 2, "you may not patch bundlesources")
	as("editor", r.runs("app", dir, "--create-service-account", "--service-account", "own")...).says(t, 0, "BundleDeployment app: Ready")
	as("editor", "delete", "app", "--yes").says(t, 0, "BundleDeployment app: gone\n")
	grasping := folder(t, map[string]string{"a.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + namespace + "}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n"})
	as("editor", r.runs("grasp", grasping, "--create-service-account", "--service-account", "grasp")...).says(t, 2, "you can only grant permissions that you have", "satchel rbac")
	as("editor", "delete", "grasp", "--yes").says(t, 0)
	as("editor", r.runs("app", dir)[:3]...).says(t, 2, "you may not list the Pods of the namespace satchel-system", "satchel-uploader")
	as("editor", "delete", "app", "--yes").says(t, 0, "gone")
}

// TestRunThroughThePod reaches the upload server as users do: by a port forward to the Pod of the source controller.
func TestRunThroughThePod(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: "bundle-source-controller-0", Labels: map[string]string{
		"app.kubernetes.io/name": "bundle-source-controller", "app.kubernetes.io/part-of": "satchel"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "manager", Image: "x"}}
	if err := r.Admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Admin.Delete(t.Context(), pod) })
	dir := folder(t, map[string]string{"a.yaml": configMapText("forwarded", "one")})
	r.Eventually(t, t.Context(), "the Pod runs", func(ctx context.Context) (bool, string) {
		err := r.Admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && pod.Status.Phase == corev1.PodRunning, string(pod.Status.Phase)
	})
	r.satchel(t, namespace, "run", "app", dir).says(t, 0, "Uploaded ", "BundleDeployment app: Ready")
	r.satchel(t, namespace, "delete", "app", "--yes").says(t, 0, "gone")
}
