// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert"
)

// TestSubjectsElsewhere (operator-lifecycle-manager #3613): plain bundles, as the converter does for registry+v1.
func TestSubjectsElsewhere(t *testing.T) {
	const account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent, namespace: apps}}"
	for name, tc := range map[string]struct{ reason, account, subjects, want string }{
		"another namespace": {"it gets no permissions", account, "{kind: ServiceAccount, name: agent, namespace: system}",
			"warning subject: it binds ServiceAccount agent of the namespace system, and the bundle's own is in apps: it does not get these permissions"},
		"its namespace":        {"it is meant", account, "{kind: ServiceAccount, name: agent, namespace: apps}", ""},
		"install namespace":    {"the account is installed there", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent}}", "{kind: ServiceAccount, name: agent, namespace: here}", ""},
		"an account of others": {"plain manifests may mean it", account, "{kind: ServiceAccount, name: prometheus, namespace: monitoring}", ""},
		"a user":               {"it has no namespace", account, "{kind: User, name: agent, apiGroup: rbac.authorization.k8s.io}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{
				"a.yaml": {Data: []byte(tc.account)},
				"b.yaml": {Data: []byte("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, " +
					"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [" + tc.subjects + "]}")},
			}
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			if diff := cmp.Diff(want, short(Bundle(files, convert.Options{InstallNamespace: "here"}))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
