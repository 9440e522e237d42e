// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// addition is in the next version of an operator, and not in the published one.
const addition = "satchel-test-addition"

// nextVersion writes another version of a bundle to a folder, and returns its name: the CSV has another name, and so
// have the roles; there is one more permission and a changed Deployment, and there is one more ConfigMap.
func (b bundle) nextVersion(t *testing.T) string {
	t.Helper()
	return b.changed(t, addition, changeCSV)
}

// changed writes a version of a bundle to a folder, with another CSV and one more ConfigMap, and returns its name.
func (b bundle) changed(t *testing.T, added string, change func(*testing.T, []byte) []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), b.name)
	if err := os.CopyFS(dir, b.files()); err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(dir, "manifests")
	written := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + added + "}\ndata: {a: b}\n"
	if err := os.WriteFile(filepath.Join(manifests, added+".yaml"), []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	found := 0
	err := filepath.WalkDir(manifests, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), "kind: ClusterServiceVersion") {
			return err
		}
		found++
		return os.WriteFile(path, change(t, content), 0o600)
	})
	if err != nil || found != 1 {
		t.Fatalf("%d CSVs changed, %v", found, err)
	}
	return dir
}

func changeCSV(t *testing.T, content []byte) []byte {
	t.Helper()
	csv := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &csv.Object); err != nil {
		t.Fatal(err)
	}
	csv.SetName("next-" + csv.GetName())
	change(t, csv.Object, "999.0.0", "spec", "version")
	permissions, _, _ := unstructured.NestedSlice(csv.Object, "spec", "install", "spec", "clusterPermissions")
	deployments, _, _ := unstructured.NestedSlice(csv.Object, "spec", "install", "spec", "deployments")
	first, _ := deployments[0].(map[string]any)
	account, _, _ := unstructured.NestedString(first, "spec", "template", "spec", "serviceAccountName")
	permissions = append(permissions, map[string]any{"serviceAccountName": account, "rules": []any{map[string]any{
		"apiGroups": []any{"additions.example.org"}, "resources": []any{"additions"}, "verbs": []any{"get", "patch"},
	}}})
	change(t, csv.Object, permissions, "spec", "install", "spec", "clusterPermissions")
	change(t, first, addition, "spec", "template", "metadata", "annotations", "example.org/changed")
	change(t, csv.Object, deployments, "spec", "install", "spec", "deployments")
	out, err := yaml.Marshal(csv.Object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func change(t *testing.T, object map[string]any, value any, fields ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(object, value, fields...); err != nil {
		t.Fatal(err)
	}
}
