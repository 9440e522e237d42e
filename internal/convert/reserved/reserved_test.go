// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// flux-f06: what the control plane writes is dropped with a warning, and nothing else.
func TestF53Drop(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, warns, gone string }{
		"aggregated role, empty": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [], aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}", "rules is left out, because the control plane", "rules"},
		"aggregated role, null":  {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: null, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}", "rules", "rules"},
		"aggregated role, rules": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}], aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}", "rules", "verbs"},
		"selects nothing":        {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}], aggregationRule: {clusterRoleSelectors: []}}", "", ""},
		"plain role":             {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: []}", "", ""},
		"revision":               {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: '4', mine: b}}}", "metadata.annotations.deployment.kubernetes.io/revision", "revision"},
		"only the revision":      {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: '4'}}}", "revision", "annotations"},
		"namespace":              {"{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}}", "spec.finalizers", "finalizers"},
		"claim":                  {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}}", "bind-completed", "bind-completed"},
		"another group":          {"{apiVersion: example.org/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: '4'}}}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.manifest), &object.Object); err != nil {
				t.Fatal(err)
			}
			before, _ := object.MarshalJSON()
			warnings := strings.Join(Drop(object), "\n")
			after, _ := object.MarshalJSON()
			if !strings.Contains(warnings, tc.warns) || (warnings == "") != (tc.warns == "") {
				t.Errorf("warns %q", warnings)
			}
			if tc.gone == "" && string(before) != string(after) || tc.gone != "" && strings.Contains(string(after), tc.gone) {
				t.Errorf("got %s", after)
			}
		})
	}
}
