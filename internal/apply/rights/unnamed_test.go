// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

// everyKind has an object of each sort that decides whether permissions are limited by name.
const everyKind = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings-1a2b, namespace: apps}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: apps}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner, namespace: apps}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: apps}
rules: []
---
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: kube-system}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
---
apiVersion: v1
kind: Namespace
metadata: {name: own}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: own}
`

// Without Strict an object of most namespaced kinds may have another name in the next version.
func TestRequiredWithoutNames(t *testing.T) {
	r := request(t, strings.TrimSpace(everyKind))
	r.Strict = false
	r.Inputs = []inventory.ID{{Kind: "Secret", Namespace: "team", Name: "values"}, {Kind: "ConfigMap", Namespace: "team", Name: "values"}}
	got, err := rights.Of(r)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		": create,delete,get,patch  configmaps [inside]",
		": create,delete,get,patch  namespaces [own]",
		": create,delete,get,patch scheduling.k8s.io priorityclasses [high]",
		"apps: create,delete,get,patch  configmaps",
		"apps: delete,get,patch  secrets [login]",
		"apps: create  secrets,serviceaccounts",
		"apps: delete,get,patch  serviceaccounts [runner]",
		"apps: create rbac.authorization.k8s.io roles",
		"apps: delete,get,patch rbac.authorization.k8s.io roles [r]",
		"kube-system: create,delete,get,patch  services [metrics]",
		"team: get  configmaps,secrets [values]",
	}
	if diff := cmp.Diff(want, lines(got.Required)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What an account lacks becomes roles beside those that it has.
func TestAdditions(t *testing.T) {
	r := request(t, strings.TrimSpace(everyKind)+"\n---\n"+strings.TrimSpace(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator-3c4d}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
`))
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	missing, err := r.Missing(rights.HeldBy([]rights.Grant{{Rules: []rbacv1.PolicyRule{pods}}}))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		strict bool
		apps   []string
	}{
		"by kind": {false, []string{
			"create,delete,get,patch configmaps []", "delete,get,patch secrets [login]", "create secrets,serviceaccounts []",
			"delete,get,patch serviceaccounts [runner]", "create roles []", "delete,get,patch roles [r]",
		}},
		"by name": {true, []string{
			"create,delete,get,patch configmaps [settings-1a2b]", "create,delete,get,patch secrets [login]",
			"create,delete,get,patch serviceaccounts [runner]", "create,delete,get,patch roles [r]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r.Strict = tc.strict
			objects, err := rights.Additions(r, missing, []string{"own"})
			if err != nil {
				t.Fatal(err)
			}
			found := map[string][]string{}
			for _, object := range objects {
				if object.GetLabels()[rights.Label] != string(rights.Added) || !strings.HasPrefix(object.GetName(), "satchel:team:app:added-") {
					t.Errorf("%s %s has the labels %v", object.GetKind(), object.GetName(), object.GetLabels())
				}
				var role rbacv1.Role
				text, err := yaml.Marshal(object.Object)
				if err != nil || yaml.Unmarshal(text, &role) != nil {
					t.Fatal(err)
				}
				for _, rule := range role.Rules {
					found[object.GetNamespace()] = append(found[object.GetNamespace()],
						strings.Join(rule.Verbs, ",")+" "+strings.Join(rule.Resources, ",")+" ["+strings.Join(rule.ResourceNames, ",")+"]")
				}
			}
			want := map[string][]string{
				"apps":        tc.apps,
				"kube-system": {"create,delete,get,patch services [metrics]"},
				"": { // the namespace does not exist yet, so no Role can be in it
					"create,delete,get,patch configmaps [inside]", "create,delete,get,patch namespaces [own]", "list pods []",
					"create,delete,get,patch clusterroles [operator-3c4d]", "create,delete,get,patch priorityclasses [high]",
				},
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A namespace that the deployment needs and does not create is created beside the roles in it: nothing is granted cluster-wide for it.
func TestAdditionsCreateMissingNamespaces(t *testing.T) {
	r := request(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}")
	missing, err := r.Missing(rights.Held{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		created []string
		want    []string
	}{
		"created by the deployment": {nil, []string{"ClusterRole /", "ClusterRoleBinding /"}},
		"created here":              {[]string{"shop", "unused"}, []string{"Namespace /shop", "Role shop/", "RoleBinding shop/"}},
	} {
		t.Run(name, func(t *testing.T) {
			r.Namespaces = tc.created
			objects, err := rights.Additions(r, missing, []string{"shop", "unused"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, object.GetKind()+" "+object.GetNamespace()+"/"+strings.Split(object.GetName(), "satchel:")[0])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
