// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/workspace"
)

const (
	accessGroup = "rbac.authorization.k8s.io"

	selfAdmin = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: self}
subjects: [{kind: SUBJECT}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
---
apiVersion: v1
kind: Service
metadata: {name: later}
spec: {ports: [{port: 80}]}
`
	viewer = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: WHERE}
subjects: [{kind: ServiceAccount, name: web, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS-seen}
`
)

// A plan that writes nothing sends no request; one that writes sends one a namespace,
// and one for the cluster where there are several, however much the account lacks.
func TestPreflightCosts(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	cost := func(p plan.Plan) int64 {
		before := w.Client.Requests()
		_, err := preflight.Check(t.Context(), w.Client, p)
		w.must(err)
		return w.Client.Requests() - before
	}
	workspace.Eventually(t, "the rules that the test read to be out of date", func() error {
		if got := cost(w.Plan(w.Objects(application))); got != 1 {
			return fmt.Errorf("%d requests before an install in one namespace, want 1", got)
		}
		return nil
	})
	w.MustApply(application)
	if got := cost(w.Plan(w.Objects(application))); got != 0 {
		t.Errorf("%d requests before nothing is written", got)
	}
	var many []string
	for i := range 50 {
		many = append(many, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: default}", i),
			fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-%d}", i))
	}
	if got := cost(w.Plan(w.Objects(strings.Join(many, "\n---\n")))); got != 3 {
		t.Errorf("%d requests for a hundred objects that may not be written, want one for their namespace, one for that of what goes and one for the cluster", got)
	}
}

// The permissions are read with one request a namespace, and none for namespaces
// that do not exist or for which cluster-wide permissions suffice.
func TestPreflightCostsInManyNamespaces(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Rule("", "namespaces", "*"), workspace.Rule("", "configmaps", "get,list"))
	var bundle []string
	in := func(namespace string) {
		bundle = append(bundle, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: %s}", namespace))
	}
	for i := range 3 {
		in(controlplane.NewNamespace(t, w.ControlPlane))
		in(fmt.Sprintf("%s-new-%d", w.Namespace, i))
		bundle = append(bundle, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-new-%d}", i))
	}
	in(w.Namespace)
	asked := func() (int64, int) {
		p := w.Plan(w.Objects(strings.Join(bundle, "\n---\n")))
		if len(p.Absent) != 3 {
			t.Errorf("absent are %q", p.Absent)
		}
		before := w.Client.Requests()
		found, err := preflight.Check(t.Context(), w.Client, p)
		w.must(err)
		return w.Client.Requests() - before, len(found.Violations)
	}
	workspace.Eventually(t, "the rules that the test read to be out of date", func() error {
		if requests, violations := asked(); requests != 5 || violations != 6 {
			return fmt.Errorf("%d requests and %d violations, want one for the cluster and one for each of four namespaces, and six without rights", requests, violations)
		}
		return nil
	})
	w.grantAll("installer")
	workspace.Eventually(t, "an administrator to be believed at once", func() error {
		if requests, violations := asked(); requests != 1 || violations != 0 {
			return fmt.Errorf("%d requests and %d violations", requests, violations)
		}
		return nil
	})
}

// grantAll makes an account an administrator.
func (w *world) grantAll(account string) {
	w.T.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + account + "-all"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: w.Namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: accessGroup, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	_, err := w.Admin.RbacV1().ClusterRoleBindings().Create(w.T.Context(), binding, metav1.CreateOptions{})
	w.must(err)
	w.T.Cleanup(func() {
		_ = w.Admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), binding.Name, metav1.DeleteOptions{})
	})
}

// A rule for the empty name does not allow named objects, and the preflight respects that.
func TestPreflightOfTheEmptyName(t *testing.T) {
	unnamed := workspace.Rule("", "configmaps", "get,list,create,patch,delete")
	unnamed.ResourceNames = []string{""}
	w := newWorld(t, workspace.Rule("", "configmaps", "get"), unnamed)
	if said := w.preflight(oneMap); !strings.Contains(said, "create, delete, patch configmaps (one)") {
		t.Errorf("got: %s", said)
	}
	if result := w.Apply(oneMap); result.Count(apply.Failed) != 1 || !strings.Contains(fmt.Sprint(result.Errors()), "forbidden") {
		t.Errorf("the API server lets it pass: %v", workspace.Kinds(result))
	}
	w = newWorld(t, workspace.Rule("", "configmaps", "get,patch,create,delete"), unnamed)
	if said := w.preflight(oneMap); said != "" {
		t.Errorf("the empty name hides a right: %s", said)
	}
}

// Drift correction is not refused because of permissions that it does not use; a new revision is,
// for its objects could not be removed.
func TestPreflightOfARepair(t *testing.T) {
	w := newWorld(t, workspace.Rule("", "configmaps", "get,list,patch,create"))
	w.MustApply(workspace.TwoMaps)
	w.Patch("application/merge-patch+json", "one", `{"data":{"colour":"green"}}`, "kubectl-edit")
	if said := w.preflight(workspace.TwoMaps); said != "" {
		t.Errorf("the repair is refused: %s", said)
	}
	for name, manifests := range map[string]string{"a change": strings.ReplaceAll(workspace.TwoMaps, "red", "blue"), "a prune": strings.Split(workspace.TwoMaps, "\n---\n")[0]} {
		if said := w.preflight(manifests); !strings.Contains(said, `: delete configmaps (one, two): `) {
			t.Errorf("%s: got: %s", name, said)
		}
	}
}

// An account that may bind a role can grant it to itself: objects in later stages than
// the binding benefit. Earlier ones do not.
func TestPreflightOfABindingToItself(t *testing.T) {
	subjects := map[string]string{
		"account": "ServiceAccount, name: installer, namespace: NS", "user": "User, name: 'system:serviceaccount:NS:installer', apiGroup: " + accessGroup,
		"group": "Group, name: 'system:serviceaccounts:NS', apiGroup: " + accessGroup,
	}
	for name, subject := range subjects {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workspace.Rule(accessGroup, "rolebindings", "get,list,create,patch,delete"), workspace.Rule("", "services", "get"), workspace.Rule(accessGroup, "clusterroles", "bind"))
			bundle := strings.ReplaceAll(selfAdmin, "SUBJECT", subject)
			if said := w.preflight(bundle); said != "" {
				t.Errorf("what the plan grants is missed: %s", said)
			}
			w.mustApplySoon(bundle)
		})
	}
	w := newWorld(t, workspace.Rule(accessGroup, "rolebindings", "get,list,create,patch,delete"), workspace.Rule("", "services,configmaps", "get"), workspace.Rule(accessGroup, "clusterroles", "bind"))
	bundle := strings.ReplaceAll(selfAdmin, "SUBJECT", subjects["account"]) + "\n---\n" + oneMap
	if said := w.preflight(bundle); !strings.Contains(said, "create, delete, patch configmaps (one)") || strings.Contains(said, "services") {
		t.Errorf("a foundation of the binding: %s", said)
	}
	if said := w.preflight(strings.ReplaceAll(selfAdmin, "SUBJECT", "ServiceAccount, name: web, namespace: NS")); !strings.Contains(said, "services (later)") {
		t.Errorf("a binding of another subject: %s", said)
	}
	w = newWorld(t, workspace.Rule(accessGroup, "rolebindings", "get,list,create,patch,delete"), workspace.Rule("", "services", "get"))
	said := w.preflight(strings.ReplaceAll(selfAdmin, "SUBJECT", subjects["account"]))
	if !strings.Contains(said, "bind clusterroles.rbac.authorization.k8s.io (admin) for RoleBinding ") || !strings.Contains(said, "services (later)") {
		t.Errorf("without the right to bind: %s", said)
	}
}

// The permissions of a role in the same plan are known: binding it to everybody hides no other missing permission.
func TestPreflightOfABindingToEverybody(t *testing.T) {
	const bundle = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: everybody}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
---
apiVersion: v1
kind: Service
metadata: {name: later}
spec: {ports: [{port: 80}]}
`
	access := workspace.Rule(accessGroup, "roles,rolebindings", "get,create,patch,delete")
	w := newWorld(t, access, workspace.Rule("", "pods,services", "get"))
	if said := w.preflight(bundle); !strings.Contains(said, "create, delete, patch services (later)") {
		t.Errorf("the binding grants other permissions than the missing ones, and got: %s", said)
	}
}

// mustApplySoon applies again until the API server knows the permissions that were just granted.
func (w *world) mustApplySoon(manifests string) {
	w.T.Helper()
	workspace.Eventually(w.T, "all applied", func() error {
		if result := w.Apply(manifests); !result.Complete() {
			return fmt.Errorf("stopped at %s: %v", result.Stage, result.Errors())
		}
		return nil
	})
}

// A role outside of the bundle may also be granted by an account that holds its rules,
// which only the API server can tell. Where it cannot either, for
// the namespace is new, no permission counts as missing.
func TestPreflightOfARoleOutside(t *testing.T) {
	w := newWorld(t, workspace.Rule(accessGroup, "rolebindings", "get,list,create,patch,delete"))
	seen := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-seen"}, Rules: []rbacv1.PolicyRule{workspace.Rule("", "pods", "get")}}
	_, err := w.Admin.RbacV1().ClusterRoles().Create(t.Context(), seen, metav1.CreateOptions{})
	w.must(err)
	t.Cleanup(func() {
		_ = w.Admin.RbacV1().ClusterRoles().Delete(context.Background(), seen.Name, metav1.DeleteOptions{})
	})
	here := strings.ReplaceAll(viewer, "WHERE", "NS")
	if said := w.preflight(here); !strings.Contains(said, "bind clusterroles.rbac.authorization.k8s.io ("+seen.Name+") for RoleBinding ") {
		t.Errorf("neither the rules nor the permission to bind are held, and got: %s", said)
	}
	w.Grant("installer", workspace.Rule("", "pods", "get,list"))
	if said := w.preflight(here); said != "" {
		t.Errorf("the rules are held, and got: %s", said)
	}
	w.GrantCluster("installer", workspace.Rule(accessGroup, "rolebindings", "get,create,patch,delete"), workspace.Rule("", "namespaces", "get,create,patch,delete"))
	there := "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-new}\n---\n" + strings.ReplaceAll(viewer, "WHERE", "NS-new")
	if said := w.preflight(there); said != "" {
		t.Errorf("it is unknown, and got: %s", said)
	}
}

// An account that may escalate or bind need not hold the rules of the roles.
func TestPreflightOfEscalators(t *testing.T) {
	plain := workspace.Rule(accessGroup, "roles,rolebindings", "get,create,patch,delete")
	rest := []rbacv1.PolicyRule{plain, workspace.Rule("", "configmaps,secrets,serviceaccounts,services", "get,create,patch,delete"), workspace.Rule("apps", "deployments", "get,create,patch,delete")}
	bundle := strings.ReplaceAll(application, "verbs: [get]", "verbs: [impersonate]")
	for name, tc := range map[string]struct {
		reason string
		rule   rbacv1.PolicyRule
		lacks  string
	}{
		"nothing":  {"neither the role nor its binding", plain, "impersonate configmaps"},
		"escalate": {"the role may be written, but not be bound", workspace.Rule(accessGroup, "roles", "escalate"), "impersonate configmaps"},
		"both":     {"both pass", workspace.Rule(accessGroup, "roles", "escalate,bind"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(rest, tc.rule)...)
			said := w.preflight(bundle)
			if tc.lacks == "" && said != "" || !strings.Contains(said, tc.lacks) {
				t.Errorf("%s: got: %s", tc.reason, said)
			}
			if byBinding := strings.Contains(said, "for RoleBinding "); byBinding != (name == "escalate") {
				t.Errorf("%s: got: %s", tc.reason, said)
			}
			if tc.lacks == "" {
				w.MustApply(bundle)
			}
		})
	}
}

// A role that is malformed, or too large, is refused before any
// request about it.
func TestPreflightOfBrokenRoles(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	many := strings.TrimSuffix(strings.Repeat("x,", 200), ",")
	for name, tc := range map[string]struct{ rules, want string }{
		"too many":  {"[{apiGroups: [" + many + "], resources: [" + many + "], verbs: [" + many + "]}]", "more than 20000 single permissions"},
		"no list":   {"{a: b}", "reading Role.rbac.authorization.k8s.io"},
		"new lines": {"[{apiGroups: [''], resources: [\"a\\nb\"], verbs: [get]}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := w.preflight("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: " + tc.rules)
			if tc.want == "" && said != "" || !strings.Contains(said, tc.want) || strings.Contains(said, "\n") {
				t.Errorf("got: %q", said)
			}
		})
	}
}

// An account that lost the permissions of a role can still repair other objects.
func TestPreflightOfARepairOfARole(t *testing.T) {
	const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`
	w := newWorld(t)
	roles, pods := workspace.Rule(accessGroup, "roles", "create,delete,get,patch"), workspace.Rule("", "pods", "get")
	w.hold([]rights.Grant{{Namespace: w.Namespace, Rules: []rbacv1.PolicyRule{roles, pods}}})
	w.MustApply(role)
	w.hold([]rights.Grant{{Namespace: w.Namespace, Rules: []rbacv1.PolicyRule{roles}}})
	if said := w.preflight(strings.ReplaceAll(role, "verbs: [get]", "verbs: [get, list]")); !strings.Contains(said, "get, list pods for Role "+w.Namespace+"/reader") {
		t.Errorf("a new revision: %s", said)
	}
	w.must(w.Admin.RbacV1().Roles(w.Namespace).Delete(t.Context(), "reader", metav1.DeleteOptions{}))
	if said := w.preflight(role); said != "" {
		t.Errorf("the repair is refused: %s", said)
	}
	if result := w.Apply(role); result.Count(apply.Failed) != 1 || !strings.Contains(fmt.Sprint(result.Errors()), "attempting to grant") {
		t.Errorf("the API server lets it pass: %v", workspace.Kinds(result))
	}
}
