// SPDX-License-Identifier: Apache-2.0

package impact_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
)

// T30: a role of an operator with another name and the same hash grants nothing new.
func TestT30RenamedRoles(t *testing.T) {
	const hash = "2eyucpnlskuwr8pz0i29anpupdkzg7aef5sakeww2ahf"
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [VERBS]}]"
	read := func(name, verbs string) []*unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.NewReplacer("NAME", name, "VERBS", verbs).Replace(role)), &o.Object); err != nil {
			t.Fatal(err)
		}
		return []*unstructured.Unstructured{o}
	}
	for name, tc := range map[string]struct {
		before, after, verbs string
		renamed, grants      bool
	}{
		"renamed":             {"a.v1-" + hash, "a.v2-" + hash, "get", true, false},
		"with a new verb":     {"a.v1-" + hash, "a.v2-" + hash, "get, list", true, true},
		"another hash":        {"a.v1-" + hash, "a.v2-" + strings.Repeat("x", len(hash)), "get", false, true},
		"no hash":             {"a-v1", "b-v1", "get", false, true},
		"nothing but a hash":  {hash, "a-" + hash, "get", false, true},
		"a name of no domain": {"a", "b", "get", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := read(tc.before, "get"), read(tc.after, tc.verbs)
			left := impact.WithoutRenamed([]inventory.ID{inventory.IDOf(before[0])}, []inventory.ID{inventory.IDOf(after[0])})
			if renamed := len(left) == 0; renamed != tc.renamed {
				t.Errorf("renamed: %v", renamed)
			}
			if of := impact.Of(before, after, "shop"); len(of.Permissions)+len(of.Definitions) > 0 != tc.grants {
				t.Errorf("permissions: %v", of.Permissions)
			}
		})
	}
}
