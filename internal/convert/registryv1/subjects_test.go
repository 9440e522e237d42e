// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestSubjectsInOtherNamespaces (operator-lifecycle-manager #3613): bindings of a bundle keep their subjects, and each ServiceAccount of a
// namespace other than the install namespace is named.
func TestSubjectsInOtherNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		kind     string
		subjects string
		want     []string
	}{
		"own account elsewhere": {"the author wrote the namespace of a test", "RoleBinding", "{kind: ServiceAccount, name: agent, namespace: system}",
			[]string{"manifests/b.yaml: RoleBinding b binds ServiceAccount agent of the namespace system, and the bundle's own is in the install namespace operators: it does not get these permissions"}},
		"account of the CSV": {"it is made by the converter", "ClusterRoleBinding", "{kind: ServiceAccount, name: tool, namespace: system}",
			[]string{"manifests/b.yaml: ClusterRoleBinding b binds ServiceAccount tool of the namespace system, and the bundle's own is in the install namespace operators: it does not get these permissions"}},
		"account of others": {"it gets permissions", "RoleBinding", "{kind: ServiceAccount, name: prometheus, namespace: monitoring}",
			[]string{"manifests/b.yaml: RoleBinding b grants permissions to ServiceAccount prometheus of the namespace monitoring, which is not of the bundle"}},
		"install namespace": {"it is meant", "RoleBinding", "{kind: ServiceAccount, name: agent, namespace: operators}", nil},
		"user and group": {"they have no namespace", "ClusterRoleBinding",
			"{kind: User, name: a, apiGroup: rbac.authorization.k8s.io}, {kind: Group, name: b, apiGroup: rbac.authorization.k8s.io}", nil},
		"none": {"nothing is granted", "RoleBinding", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{
				"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: tool}")},
				"manifests/a.yaml":          {Data: []byte("{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent}}")},
				"manifests/b.yaml": {Data: []byte("{apiVersion: rbac.authorization.k8s.io/v1, kind: " + tc.kind +
					", metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [" + tc.subjects + "]}")},
				"manifests/csv.yaml": {Data: []byte(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: tool.v1.0.0}
spec:
  version: 1.0.0
  installModes: [{type: AllNamespaces, supported: true}]
  install:
    strategy: deployment
    spec:
      permissions: [{serviceAccountName: tool, rules: []}]
      deployments:
      - name: tool
        spec:
          selector: {matchLabels: {app: tool}}
          template:
            metadata: {labels: {app: tool}}
            spec: {serviceAccountName: tool, containers: [{name: tool, image: "example.org/tool:v1"}]}
`)},
			}
			rendered, err := Convert(files, Options{InstallNamespace: "operators"}, manifest.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(rendered.Warnings, "; "); got != strings.Join(tc.want, "; ") {
				t.Errorf("%s:\ngot  %s\nwant %s", tc.reason, got, strings.Join(tc.want, "; "))
			}
		})
	}
}
