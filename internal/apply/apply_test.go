// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestMain(m *testing.M) { os.Exit(controlplane.RunMain(m)) }

// world is one deployment in a namespace of its own, with an account that may do
// what its rules say.
type world struct {
	t         *testing.T
	cp        *controlplane.ControlPlane
	admin     kubernetes.Interface
	dynamic   dynamic.Interface
	pool      *tenant.Pool
	client    *tenant.Client
	namespace string
	owner     apply.Owner
	inventory inventory.Inventory
	// migrations are kept in the memory of the process; its clock is that much ahead.
	migrations *apply.Migrations
	ahead      time.Duration
}

func (w *world) options() apply.Options { return apply.Options{Migrations: w.migrations} }

// restarted simulates a new process.
func (w *world) restarted() {
	w.migrations = &apply.Migrations{Now: func() time.Time { return time.Now().Add(w.ahead) }}
}

var everything = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}

// newWorld has an account with the rules in its own namespace only.
func newWorld(t *testing.T, rules ...rbacv1.PolicyRule) *world {
	t.Helper()
	cp := controlplane.Shared(t)
	w := &world{t: t, cp: cp, namespace: controlplane.NewNamespace(t, cp)}
	var err error
	unlimited := rest.CopyConfig(cp.RESTConfig())
	unlimited.QPS, unlimited.Burst = -1, -1 // what a test itself asks shall not wait
	if w.admin, err = kubernetes.NewForConfig(unlimited); err != nil {
		t.Fatal(err)
	}
	if w.dynamic, err = dynamic.NewForConfig(unlimited); err != nil {
		t.Fatal(err)
	}
	if w.pool, err = tenant.NewPool(cp.RESTConfig(), tenant.Options{}); err != nil {
		t.Fatal(err)
	}
	w.owner = apply.Owner{Namespace: w.namespace, Name: "app"}
	w.client = w.account("installer")
	w.restarted()
	w.grant("installer", rules...)
	return w
}

func (w *world) account(name string) *tenant.Client {
	w.t.Helper()
	ctx := w.t.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.admin.CoreV1().ServiceAccounts(w.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	client, err := w.pool.Client(tenant.Identity{Namespace: w.namespace, ServiceAccount: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return client.For(w.owner.Name)
}

func (w *world) grant(account string, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	if len(rules) == 0 {
		return
	}
	ctx, meta := w.t.Context(), metav1.ObjectMeta{GenerateName: account + "-"}
	role, err := w.admin.RbacV1().Roles(w.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.admin.RbacV1().RoleBindings(w.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: w.namespace}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: role.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.allowed("create", "configmaps", rules)
}

// grantCluster grants the account cluster-wide permissions.
func (w *world) grantCluster(account string, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	ctx, meta := w.t.Context(), metav1.ObjectMeta{Name: w.namespace + "-" + account}
	if _, err := w.admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	_, err := w.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: w.namespace}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = w.admin.RbacV1().ClusterRoles().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
		_ = w.admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
	})
	w.allowed("create", "configmaps", rules)
}

// allowed waits until the authorizer has seen the rules.
func (w *world) allowed(verb, resource string, rules []rbacv1.PolicyRule) {
	w.t.Helper()
	rule := rules[0]
	if rule.Resources[0] != "*" {
		verb, resource = rule.Verbs[0], rule.Resources[0]
	}
	if verb == "*" {
		verb = "create"
	}
	eventually(w.t, "rights of the account", func() error {
		status, err := w.client.Rules(w.t.Context(), w.namespace)
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

// objects reads manifests; NS stands for the namespace of the world.
func (w *world) objects(manifests string) []*unstructured.Unstructured {
	w.t.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(strings.ReplaceAll(manifests, "NS", w.namespace), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

func (w *world) plan(objects []*unstructured.Unstructured) plan.Plan {
	w.t.Helper()
	in, err := apply.Observe(w.t.Context(), w.client, apply.Observing{
		Owner: w.owner, Desired: objects, Previous: w.inventory, InstallNamespace: w.namespace,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return plan.Make(in)
}

// apply plans and applies, as the controller does, and stores the inventory.
func (w *world) apply(manifests string) apply.Result {
	w.t.Helper()
	return w.applyObjects(w.objects(manifests), w.options())
}

func (w *world) applyObjects(objects []*unstructured.Unstructured, o apply.Options) apply.Result {
	w.t.Helper()
	p := w.plan(objects)
	if len(p.Violations) > 0 {
		w.t.Fatalf("the plan is refused: %v", p.Violations)
	}
	w.inventory = p.Inventory
	result, err := apply.Apply(w.t.Context(), w.client, p, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.inventory = result.Inventory
	return result
}

// mustApply applies and expects everything to be applied.
func (w *world) mustApply(manifests string) apply.Result {
	w.t.Helper()
	result := w.apply(manifests)
	if !result.Complete() {
		w.t.Fatalf("stopped at stage %q: pending %q, errors %v", result.Stage, result.Pending, result.Errors())
	}
	return result
}

func kinds(result apply.Result) map[apply.Kind]int {
	counts := map[apply.Kind]int{}
	for _, outcome := range result.Outcomes {
		counts[outcome.Kind]++
	}
	return counts
}

// eventually polls until the check passes, for at most 30 s.
func eventually(t *testing.T, what string, check func() error) {
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
