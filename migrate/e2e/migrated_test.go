// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/e2erig"
	"github.com/satchel-dev/satchel/tests/installation"
)

// TestMigratedInstalls applies what is made of manifests of other installers, with their images in the registry of the
// tests, and wants the bundles to become Ready.
func TestMigratedInstalls(t *testing.T) {
	r := newRig(t)
	root := filepath.Join(installation.Root(), "tests", "bundles")
	plain := fstest.MapFS{}
	greeter := os.DirFS(filepath.Join(root, "greeter"))
	names, err := fs.Glob(greeter, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(greeter, name)
		if err != nil {
			t.Fatal(err)
		}
		plain["manifests/"+name] = &fstest.MapFile{Data: data}
	}
	plainImage := r.Push(t, "migrated/greeter:v1", plain)
	operatorImage := r.Push(t, "migrated/operator:v1", os.DirFS(filepath.Join(root, operatorName, "v0.1.0")))
	for _, tc := range []struct{ name, manifest, args string }{
		{"RukPak v1alpha1, registry class", `
apiVersion: core.rukpak.io/v1alpha1
kind: BundleDeployment
metadata: {name: migrated}
spec:
  provisionerClassName: core-rukpak-io-plain
  template:
    spec:
      provisionerClassName: core-rukpak-io-registry
      source: {type: image, image: {ref: "OPERATOR"}}`, "--install-namespace NAMESPACE"},
		{"RukPak v1alpha2, plain class", `
apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata: {name: migrated}
spec:
  installNamespace: NAMESPACE
  provisionerClassName: core-rukpak-io-plain
  source: {type: image, image: {ref: "PLAIN"}}`, ""},
		{"RukPak, ConfigMaps", `
apiVersion: core.rukpak.io/v1alpha2
kind: BundleDeployment
metadata: {name: migrated}
spec:
  installNamespace: NAMESPACE
  provisionerClassName: core-rukpak-io-plain
  source: {type: configMaps, configMaps: [{configMap: {name: content}, path: manifests}]}`, ""},
		{"RukPak, uploaded", `
apiVersion: core.rukpak.io/v1alpha1
kind: BundleDeployment
metadata: {name: migrated}
spec:
  provisionerClassName: core-rukpak-io-plain
  template: {spec: {provisionerClassName: core-rukpak-io-plain, source: {type: upload, upload: {}}}}`, "--install-namespace NAMESPACE --image migrated=PLAIN"},
		{"OLM", `
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: migrated, namespace: NAMESPACE}
spec: {name: sample-operator, channel: alpha, source: community, sourceNamespace: olm, config: {env: [{name: A, value: b}]}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: watched, namespace: NAMESPACE}
spec: {targetNamespaces: [NAMESPACE]}`, "--image NAMESPACE/migrated=OPERATOR"},
		{"OLM v1", `
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: migrated}
spec:
  namespace: NAMESPACE
  serviceAccount: {name: installer}
  source: {sourceType: Catalog, catalog: {packageName: sample-operator}}`, "--image migrated=OPERATOR"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := &operator{Rig: r, t: t, namespace: r.Namespace(t)}
			content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "content"}, Data: map[string]string{}}
			for _, name := range names {
				content.Data[name] = string(plain["manifests/"+name].Data)
			}
			if err := r.Admin.Create(t.Context(), content); err != nil {
				t.Fatal(err)
			}
			fill := strings.NewReplacer("NAMESPACE", o.namespace, "OPERATOR", operatorImage, "PLAIN", plainImage)
			file := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(file, []byte(fill.Replace(tc.manifest)), 0o600); err != nil {
				t.Fatal(err)
			}
			out := o.output(kit.ExitOK, append([]string{"manifests", file}, strings.Fields(fill.Replace(tc.args))...)...)
			key := o.Apply(t, out)
			d := r.Ready(t, key)
			if d.Status.Healthy.Revision == "" || d.Status.Inventory == nil {
				t.Errorf("nothing is installed: %s", e2erig.Describe(d))
			}
		})
	}
}

// output is what a command writes to standard output, as the administrator, in the namespace that its manifests name.
func (o *operator) output(code int, args ...string) string {
	o.t.Helper()
	var out, diagnostics bytes.Buffer
	if got := o.run(&out, &diagnostics, args...); got != code {
		o.t.Fatalf("kubectl satchel-migrate %s: exit %d, want %d\n%s\n%s", strings.Join(args, " "), got, code, &out, &diagnostics)
	}
	return out.String()
}
