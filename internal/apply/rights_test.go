// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/workspace"
)

func (w *world) preflight(manifests string) string {
	w.T.Helper()
	found, err := preflight.Check(w.T.Context(), w.Client, w.Plan(w.Objects(manifests)))
	if err != nil {
		w.T.Fatal(err)
	}
	var words []string
	for _, violation := range found.Violations {
		words = append(words, violation.String())
	}
	return strings.Join(words, "\n")
}

// Missing permissions are named in words that an administrator can act on, all at once,
// including those for removing the bundle one day.
func TestT5MissingPermissions(t *testing.T) {
	w := newWorld(t, workspace.Rule("", "configmaps", "get,patch,create,delete"), workspace.Rule("rbac.authorization.k8s.io", "roles,rolebindings", "get"),
		workspace.Rule("", "secrets,serviceaccounts,services", "*"), workspace.Rule("apps", "deployments", "get,patch,delete"))
	want := `the ServiceAccount cannot, in namespace "NS": create deployments.apps (web); ` +
		`create, delete, patch rolebindings.rbac.authorization.k8s.io (web), roles.rbac.authorization.k8s.io (web): ` +
		`grant this to service account "NS/installer" by a Role and a RoleBinding there`
	if all := w.preflight(application); all != strings.ReplaceAll(want, "NS", w.Namespace) {
		t.Errorf("got %s", all)
	}
	w.Grant("installer", workspace.Rule("rbac.authorization.k8s.io", "roles,rolebindings", "create,delete,patch"), workspace.Rule("apps", "deployments", "create"))
	if all := w.preflight(application); all != "" {
		t.Errorf("granted rights are asked for: %s", all)
	}
}

// Cluster-scoped objects and those outside the account's namespace are refused, each,
// before anything is written, and the controller's own permissions do not help.
func TestT5OutsideOfTheNamespace(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	b := controlplane.NewNamespace(t, w.ControlPlane)
	bundle := workspace.TwoMaps + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs, namespace: ` + b + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: system, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-evil}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: NS-evil}
value: 1
---
apiVersion: v1
kind: Namespace
metadata: {name: NS-evil}
`
	mark := w.AuditMark()
	p := w.Plan(w.Objects(bundle))
	var words []string
	for _, violation := range p.Violations {
		words = append(words, violation.String())
	}
	all := strings.Join(words, "\n")
	if !strings.Contains(all, " and 4 more: grant it permission to get them") {
		t.Errorf("five objects cannot be looked at, and got: %s", all)
	}
	said := w.preflight(bundle)
	for _, id := range []string{
		`in namespace "` + b + `": create, delete, get, patch configmaps (theirs): `,
		`in namespace "kube-system": create, delete, get, patch configmaps (system): `,
		"in the cluster: create, delete, get, patch clusterroles.rbac.authorization.k8s.io (NS-evil), namespaces (NS-evil), priorityclasses.scheduling.k8s.io (NS-evil): ",
	} {
		if !strings.Contains(said, "the ServiceAccount cannot, "+strings.ReplaceAll(id, "NS", w.Namespace)) {
			t.Errorf("%s is not said at once:\n%s", id, said)
		}
	}
	// Executed all the same, the plan is refused by the API server.
	result, err := apply.Apply(t.Context(), w.Client, p, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Count(apply.Created) != 2 {
		t.Errorf("created %v, want the two objects of the own namespace", workspace.Kinds(result))
	}
	w.onlyTheAccount(mark)
}

// onlyTheAccount reads in the audit log that since the given position the pool's own
// identity only did discovery, and that it impersonated only the account.
func (w *world) onlyTheAccount(mark controlplane.AuditMark) {
	w.T.Helper()
	events, err := w.ControlPlane.Audit(mark)
	if err != nil {
		w.T.Fatal(err)
	}
	tenant := 0
	for _, event := range events {
		if event.ImpersonatedUser == w.Client.Identity().Username() {
			tenant++
		} else if event.ImpersonatedUser != "" {
			w.T.Errorf("another user was impersonated: %s", event)
		}
	}
	if tenant == 0 {
		w.T.Error("the audit log shows no request of the account: the test sees nothing")
	}
}

// A role with more permissions than the account is refused by the preflight, and by the
// dry run, before the objects of earlier stages are written; no part of it remains.
func TestT6Escalation(t *testing.T) {
	const escalate = `
apiVersion: v1
kind: ConfigMap
metadata: {name: bystander}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: root}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: root}
subjects: [{kind: ServiceAccount, name: web, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: root}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: admins}
subjects: [{kind: ServiceAccount, name: web, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
`
	w := newWorld(t, workspace.Rule("", "configmaps", "*"), workspace.Rule("rbac.authorization.k8s.io", "roles,rolebindings", "get,create,patch,list,delete"))
	want := `the ServiceAccount cannot grant what it does not hold, in namespace "NS": * *.* for Role NS/root: ` +
		`grant this, or to escalate the roles and to bind them, to service account "NS/installer" by a Role and a RoleBinding there
the ServiceAccount may not grant permissions that it cannot be shown to hold, in namespace "NS": bind clusterroles.rbac.authorization.k8s.io (cluster-admin) for RoleBinding NS/admins: ` +
		`grant this to service account "NS/installer" by a Role and a RoleBinding there`
	if missing := w.preflight(escalate); missing != strings.ReplaceAll(want, "NS", w.Namespace) {
		t.Errorf("the preflight says %s", missing)
	}
	check, err := dryrun.Run(t.Context(), w.Client, w.Plan(w.Objects(escalate)), dryrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, failed := range check.Failed {
		words = append(words, failed.Error())
	}
	all := strings.Join(words, "\n")
	if len(check.Failed) != 2 || !strings.Contains(all, "Role.rbac.authorization.k8s.io "+w.Namespace+"/root: ") ||
		!strings.Contains(all, "RoleBinding.rbac.authorization.k8s.io "+w.Namespace+"/admins: ") || !strings.Contains(all, "attempting to grant") {
		t.Errorf("got %s", all)
	}
	if len(check.Unknown) != 1 || check.Unknown[0].Name != "root" {
		t.Errorf("unknown %v, want the binding with the new role", check.Unknown)
	}
	roles, err := w.Admin.RbacV1().Roles(w.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=root"})
	if err != nil || len(roles.Items) > 0 {
		t.Errorf("the role exists (%v)", err)
	}
}

// An upgrade that the API server would refuse in part is found by the dry run
// while the old state is untouched; a first install dry-runs only RBAC objects.
func TestDryRunOfAnUpgrade(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	before := w.Client.Requests()
	p := w.Plan(w.Objects(workspace.TwoMaps))
	if _, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := w.Client.Requests() - before; got > 2 {
		t.Errorf("%d requests before a first install, want the LIST and the look at the namespace", got)
	}
	w.MustApply(workspace.TwoMaps)
	next := strings.ReplaceAll(workspace.TwoMaps, "colour: red", `"not a key": x`)
	p = w.Plan(w.Objects(strings.ReplaceAll(next, "size: big", "size: small")))
	check, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if check.Passed != 1 || len(check.Failed) != 1 || !strings.Contains(check.Failed[0].Error(), "/two: ") {
		t.Errorf("got %+v", check)
	}
	if w.data("one")["size"] != "big" {
		t.Error("a dry run wrote")
	}
	w.Patch("application/merge-patch+json", "one", `{"data":{"colour":"green"}}`, "kubectl-edit")
	if check, err = dryrun.Run(t.Context(), w.Client, w.Plan(w.Objects(workspace.TwoMaps)), dryrun.Options{}); err != nil || check.Passed > 0 {
		t.Errorf("got %+v, %v: a repair is tried first", check, err)
	}
}

// An object that depends on another one of the same plan is unknown, not failed.
func TestDryRunUnknown(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Rule("*", "*", "*"))
	w.MustApply(workspace.TwoMaps)
	bundle := w.widgets() + "\n---\n" + workspace.TwoMaps + `
---
apiVersion: v1
kind: Namespace
metadata: {name: NS-new}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: NS-new}
`
	p := w.Plan(w.Objects(bundle))
	check, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	unknown := map[string]bool{}
	for _, id := range check.Unknown {
		unknown[id.Kind] = true
	}
	if len(check.Failed) != 0 || !unknown["Widget"] || !unknown["ConfigMap"] || len(check.Unknown) != 2 {
		t.Errorf("got %+v", check)
	}
}

// An object that is not desired any more and may not be deleted stays in the inventory and
// is named; it is deleted when the permission is granted.
func TestF6DeniedPrune(t *testing.T) {
	w := newWorld(t, workspace.Rule("", "configmaps", "get,list,patch,create"))
	w.MustApply(workspace.TwoMaps)
	pruned := w.prune(oneMap)
	if len(pruned.Denied) != 1 || !strings.Contains(pruned.Denied[0].Error(), "ConfigMap "+w.Namespace+"/two: ") || pruned.Complete() {
		t.Fatalf("got %+v", pruned)
	}
	if !w.Inventory.Has(inventory.ID{Kind: "ConfigMap", Namespace: w.Namespace, Name: "two"}) {
		t.Error("the object left the inventory")
	}
	w.Grant("installer", workspace.Rule("", "configmaps", "delete"))
	if pruned = w.prune(oneMap); pruned.Deleted != 1 || !pruned.Complete() {
		t.Errorf("with the right: %+v", pruned)
	}
}

// For an account that may not list, objects are read by single GETs.
func TestObserveWithoutList(t *testing.T) {
	w := newWorld(t, workspace.Rule("", "configmaps", "get,patch,create"))
	w.MustApply(workspace.TwoMaps)
	if p := w.Plan(w.Objects(workspace.TwoMaps)); p.Count(plan.Unchanged) != 2 {
		t.Error(p.Summary())
	}
}
