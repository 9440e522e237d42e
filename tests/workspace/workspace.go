// SPDX-License-Identifier: Apache-2.0

// Package workspace gives a test a namespace of its own on the shared control plane, with a BundleDeployment's
// account, the clients of that account and of an administrator, and what the deployment has applied so far.
// It plans and applies as the deployment controller does; what a test asserts is left to the test.
package workspace

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/apply/storageversion"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// Workspace is one deployment in a namespace of its own, with an account that may do
// what its rules say.
type Workspace struct {
	T            *testing.T
	ControlPlane *controlplane.ControlPlane
	Admin        kubernetes.Interface
	Dynamic      dynamic.Interface
	Pool         *tenant.Pool
	Client       *tenant.Client
	Namespace    string
	Owner        inventory.Owner
	Inventory    inventory.Inventory
	// Migrations are kept in the memory of the process, with a clock that is Ahead of the time.
	Migrations *storageversion.Migrations
	Ahead      time.Duration
}

// Options of the applies of this workspace.
func (w *Workspace) Options() apply.Options { return apply.Options{Migrations: w.Migrations} }

// RemovalOptions are the options of its removals.
func (w *Workspace) RemovalOptions() removal.Options {
	return removal.Options{Migrations: w.Migrations}
}

// Restart simulates a new process.
func (w *Workspace) Restart() {
	w.Migrations = &storageversion.Migrations{Now: func() time.Time { return time.Now().Add(w.Ahead) }}
}

// Everything allows everything.
var Everything = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}

// New makes a workspace with an account that has the rules in its own namespace only.
func New(t *testing.T, rules ...rbacv1.PolicyRule) *Workspace {
	t.Helper()
	cp := controlplane.Shared(t)
	w := &Workspace{T: t, ControlPlane: cp, Namespace: controlplane.NewNamespace(t, cp)}
	var err error
	unlimited := rest.CopyConfig(cp.RESTConfig())
	unlimited.QPS, unlimited.Burst = -1, -1 // what a test itself asks shall not wait
	if w.Admin, err = kubernetes.NewForConfig(unlimited); err != nil {
		t.Fatal(err)
	}
	if w.Dynamic, err = dynamic.NewForConfig(unlimited); err != nil {
		t.Fatal(err)
	}
	if w.Pool, err = tenant.NewPool(cp.RESTConfig(), tenant.Options{}); err != nil {
		t.Fatal(err)
	}
	w.Owner = inventory.Owner{Namespace: w.Namespace, Name: "app"}
	w.Client = w.Account("installer")
	w.Restart()
	w.Grant("installer", rules...)
	return w
}

// Account makes a ServiceAccount, and returns its client.
func (w *Workspace) Account(name string) *tenant.Client {
	w.T.Helper()
	ctx := w.T.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.Admin.CoreV1().ServiceAccounts(w.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		w.T.Fatal(err)
	}
	client, err := w.Pool.Client(tenant.Identity{Namespace: w.Namespace, ServiceAccount: name})
	if err != nil {
		w.T.Fatal(err)
	}
	return client.For(w.Owner.Name)
}

// Grant grants an account permissions in the namespace, and waits until they are in effect.
func (w *Workspace) Grant(account string, rules ...rbacv1.PolicyRule) {
	w.T.Helper()
	if len(rules) == 0 {
		return
	}
	ctx, meta := w.T.Context(), metav1.ObjectMeta{GenerateName: account + "-"}
	role, err := w.Admin.RbacV1().Roles(w.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	_, err = w.Admin.RbacV1().RoleBindings(w.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: w.Namespace}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: role.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	w.allowed("create", "configmaps", rules)
}

// GrantCluster grants the account cluster-wide permissions.
func (w *Workspace) GrantCluster(account string, rules ...rbacv1.PolicyRule) {
	w.T.Helper()
	ctx, meta := w.T.Context(), metav1.ObjectMeta{Name: w.Namespace + "-" + account}
	if _, err := w.Admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		w.T.Fatal(err)
	}
	_, err := w.Admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: w.Namespace}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() {
		_ = w.Admin.RbacV1().ClusterRoles().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
		_ = w.Admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
	})
	w.allowed("create", "configmaps", rules)
}

// allowed waits until the authorizer has seen the rules.
func (w *Workspace) allowed(verb, resource string, rules []rbacv1.PolicyRule) {
	w.T.Helper()
	rule := rules[0]
	if rule.Resources[0] != "*" {
		verb, resource = rule.Verbs[0], rule.Resources[0]
	}
	if verb == "*" {
		verb = "create"
	}
	Eventually(w.T, "rights of the account", func() error {
		status, err := w.Client.Rules(w.T.Context(), w.Namespace)
		if err != nil {
			return err
		}
		for _, r := range status.ResourceRules {
			if strings.Join(r.Resources, ",") == strings.Join(rule.Resources, ",") && strings.Join(r.Verbs, ",") == strings.Join(rule.Verbs, ",") {
				return nil
			}
		}
		return fmt.Errorf("may not %s %s yet", verb, resource)
	})
}

// Objects reads manifests; NS stands for the namespace of the workspace.
func (w *Workspace) Objects(manifests string) []*unstructured.Unstructured {
	w.T.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(strings.ReplaceAll(manifests, "NS", w.Namespace), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.T.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// Plan plans objects.
func (w *Workspace) Plan(objects []*unstructured.Unstructured) plan.Plan {
	w.T.Helper()
	in, err := observe.Cluster(w.T.Context(), w.Client, observe.Request{
		Owner: w.Owner, Desired: objects, Previous: w.Inventory, InstallNamespace: w.Namespace,
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return plan.Make(in)
}

// Apply plans and applies, as the controller does, and stores the inventory.
func (w *Workspace) Apply(manifests string) apply.Result {
	w.T.Helper()
	return w.ApplyObjects(w.Objects(manifests), w.Options())
}

// ApplyObjects is Apply for decoded objects.
func (w *Workspace) ApplyObjects(objects []*unstructured.Unstructured, o apply.Options) apply.Result {
	w.T.Helper()
	p := w.Plan(objects)
	if len(p.Violations) > 0 {
		w.T.Fatalf("the plan is refused: %v", p.Violations)
	}
	w.Inventory = p.Inventory
	result, err := apply.Apply(w.T.Context(), w.Client, p, o)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Inventory = result.Inventory
	return result
}

// TwoMaps are the manifests of two ConfigMaps, one and two.
const TwoMaps = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {tier: a}}
data: {colour: blue, size: big}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two}
data: {colour: red}
`

// MustApply applies and expects everything to be applied.
func (w *Workspace) MustApply(manifests string) apply.Result {
	w.T.Helper()
	result := w.Apply(manifests)
	if !result.Complete() {
		w.T.Fatalf("stopped at stage %q: pending %q, errors %v", result.Stage, result.Pending, result.Errors())
	}
	return result
}

// Kinds counts the outcomes.
func Kinds(result apply.Result) map[apply.Kind]int {
	counts := map[apply.Kind]int{}
	for _, outcome := range result.Outcomes {
		counts[outcome.Kind]++
	}
	return counts
}

// Eventually polls until the check passes, for at most 30 s.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Patch patches a ConfigMap as another field manager.
func (w *Workspace) Patch(kind types.PatchType, name, patch, manager string) {
	w.T.Helper()
	_, err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Patch(w.T.Context(), name, kind, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		w.T.Fatal(err)
	}
}

// Scale scales the Deployment "web" as another field manager.
func (w *Workspace) Scale(replicas, manager string) {
	w.T.Helper()
	_, err := w.Admin.AppsV1().Deployments(w.Namespace).Patch(w.T.Context(), "web", types.MergePatchType,
		[]byte(`{"spec":{"replicas":`+replicas+`}}`), metav1.PatchOptions{FieldManager: manager}, "scale")
	if err != nil {
		w.T.Fatal(err)
	}
}

// Replicas are those of the Deployment "web".
func (w *Workspace) Replicas() int32 {
	w.T.Helper()
	found, err := w.Admin.AppsV1().Deployments(w.Namespace).Get(w.T.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return *found.Spec.Replicas
}

// Rule is a policy rule, with lists separated by commas.
func Rule(groups, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","),
	}
}

// AuditMark is the present position in the audit log.
func (w *Workspace) AuditMark() controlplane.AuditMark {
	w.T.Helper()
	w.ControlPlane.RequireControl(w.T)
	mark, err := w.ControlPlane.AuditMark()
	if err != nil {
		w.T.Fatal(err)
	}
	return mark
}
