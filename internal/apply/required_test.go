// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// operator has all kinds of objects that demand permissions.
const operator = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mice.NS.example.org}
spec:
  group: NS.example.org
  scope: Namespaced
  names: {plural: mice, singular: mouse, kind: Mouse, listKind: MouseList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator}
---
apiVersion: v1
kind: Secret
metadata: {name: serving}
stringData: {key: CANARY-required}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-operator}
rules:
- {apiGroups: [NS.example.org], resources: [mice, mice/status], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes], verbs: [get, list]}
- {nonResourceURLs: [/NS/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NS-operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS-operator}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-gathering}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {NS: gather}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: operator}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [lock], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operator-view}
subjects: [{kind: ServiceAccount, name: operator, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  replicas: 1
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {serviceAccountName: operator, containers: [{name: operator, image: registry.example/operator:v1}]}
---
apiVersion: NS.example.org/v1
kind: Mouse
metadata: {name: jerry}
`

// needed are the objects of a bundle as input for the computation of permissions.
func (w *world) needed(manifests string) []plan.Object {
	objects := w.Objects(manifests)
	definitions := crds.Definitions(objects)
	cluster := []string{"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
	var list []plan.Object
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		kind := plan.Kind{Resource: gvk.GroupVersion().WithResource(rights.Plural(gvk.Kind)), Namespaced: !slices.Contains(cluster, gvk.Kind)}
		if definition, found := definitions[gvk.GroupKind()]; found {
			kind, _ = plan.KindOf(definition, gvk.Version)
		}
		if kind.Namespaced {
			object.SetNamespace(w.Namespace)
		}
		list = append(list, plan.Object{ID: inventory.IDOf(object), Kind: kind, Desired: object})
	}
	return list
}

// hold writes roles with exactly these grants, in place of those of the last call,
// and waits until the API server knows them.
func (w *world) hold(grants []rights.Grant) {
	w.T.Helper()
	ctx, meta := w.T.Context(), metav1.ObjectMeta{Name: w.Namespace + "-hold"}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "installer", Namespace: w.Namespace}}
	cluster, own := rbacv1.ClusterRole{ObjectMeta: meta}, rbacv1.Role{ObjectMeta: meta}
	for _, grant := range grants {
		switch grant.Namespace {
		case "":
			cluster.Rules = grant.Rules
		case w.Namespace:
			own.Rules = grant.Rules
		default:
			w.T.Fatalf("a grant in namespace %q", grant.Namespace)
		}
	}
	access := w.Admin.RbacV1()
	_, err := access.ClusterRoles().Update(ctx, &cluster, metav1.UpdateOptions{}) // which creates it, too
	if _, found := access.ClusterRoleBindings().Get(ctx, meta.Name, metav1.GetOptions{}); found != nil {
		_, bound := access.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}, metav1.CreateOptions{})
		w.must(bound)
		w.T.Cleanup(func() {
			_ = access.ClusterRoles().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
			_ = access.ClusterRoleBindings().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
		})
	}
	w.must(err)
	_, err = access.Roles(w.Namespace).Update(ctx, &own, metav1.UpdateOptions{})
	if _, found := access.RoleBindings(w.Namespace).Get(ctx, meta.Name, metav1.GetOptions{}); found != nil {
		_, bound := access.RoleBindings(w.Namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}, metav1.CreateOptions{})
		w.must(bound)
	}
	w.must(err)
	w.known(len(cluster.Rules), len(own.Rules), grants)
}

func (w *world) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// known waits until the API server answers with exactly the grants, beside the default ones.
func (w *world) known(cluster, own int, grants []rights.Grant) {
	w.T.Helper()
	wanted := map[string]bool{}
	for _, grant := range grants {
		for _, rule := range grant.Rules {
			wanted[fmt.Sprint(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs)] = true
		}
	}
	workspace.Eventually(w.T, "exactly these rights", func() error {
		status, err := w.Client.Rules(w.T.Context(), w.Namespace)
		if err != nil {
			return err
		}
		found := 0
		for _, rule := range status.ResourceRules {
			if wanted[fmt.Sprint(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, []string(nil))] {
				found++
			} else if !slices.Contains(rule.APIGroups, "authorization.k8s.io") && !slices.Contains(rule.APIGroups, "authentication.k8s.io") {
				return fmt.Errorf("still %v", rule)
			}
		}
		for _, rule := range status.NonResourceRules {
			if wanted[fmt.Sprint(rule.Verbs, []string(nil), []string(nil), []string(nil), rule.NonResourceURLs)] {
				found++
			} else if strings.Contains(fmt.Sprint(rule.NonResourceURLs), w.Namespace) {
				return fmt.Errorf("still %v", rule)
			}
		}
		if found != cluster+own {
			return fmt.Errorf("%d of %d rules", found, cluster+own)
		}
		return nil
	})
}

// refusals are all permissions that a plan and its preflight find missing.
func (w *world) refusals(manifests string) string {
	w.T.Helper()
	p := w.Plan(w.Objects(manifests))
	found, err := preflight.Check(w.T.Context(), w.Client, p)
	w.must(err)
	var words []string
	for _, violation := range violation.SortViolations(slices.Concat(p.Violations, found.Violations)) {
		words = append(words, string(violation.Rule)+" "+violation.String())
	}
	return strings.Join(words, "\n")
}

// An account that holds exactly the required permissions installs, upgrades and removes the
// bundle. Without any one rule the preflight says what is missing.
func TestRequiredIsEnoughAndNothingToSpare(t *testing.T) {
	w := newWorld(t)
	next := strings.ReplaceAll(operator, "registry.example/operator:v1", "registry.example/operator:v2")
	next = strings.ReplaceAll(next, "name: jerry", "name: tom")
	next = strings.ReplaceAll(next, "verbs: [get, list]}", "verbs: [get, list, watch]}")
	required := func(manifests, before string) []rights.Grant {
		request := rights.Request{
			Deployment: w.Owner, ServiceAccount: "installer", InstallNamespace: w.Namespace, Objects: w.needed(manifests), Gone: w.needed(before), Strict: true,
		}
		found, err := rights.Of(request)
		w.must(err)
		return found.Required
	}
	all := required(operator, "")
	w.acceptable(rights.Request{
		Deployment: w.Owner, ServiceAccount: "printed", InstallNamespace: w.Namespace, Objects: w.needed(operator),
	})
	for i, grant := range all {
		for j, rule := range grant.Rules {
			less := slices.Clone(all)
			less[i].Rules = slices.Concat(grant.Rules[:j], grant.Rules[j+1:])
			w.hold(less)
			said := w.refusals(operator)
			for _, resource := range rule.Resources {
				if !strings.Contains(said, "PermissionMissing") || !strings.Contains(said, resource) {
					t.Errorf("without %q %v got: %s", grant.Namespace, rule, said)
				}
			}
			for _, url := range rule.NonResourceURLs {
				if !strings.Contains(said, url) {
					t.Errorf("without %v got: %s", rule, said)
				}
			}
		}
	}
	w.hold(all)
	if said := w.refusals(operator); said != "" {
		t.Fatalf("what is required is not enough: %s", said)
	}
	w.MustApply(operator)
	upgrade := required(next, operator)
	if said := w.refusals(next); !strings.Contains(said, "watch nodes") || !strings.Contains(said, "watch pods") {
		t.Errorf("before the ServiceAccount has the rights of the new version: %s", said)
	}
	w.hold(upgrade)
	if said := w.refusals(next); said != "" {
		t.Fatalf("what an upgrade requires is not enough: %s", said)
	}
	w.MustApply(next)
	if pruned := w.prune(next); !pruned.Complete() || pruned.Deleted != 1 {
		t.Fatalf("pruned %+v", pruned)
	}
	w.hold(required(next, ""))
	workspace.Eventually(t, "removal", func() error {
		removed, err := removal.Remove(t.Context(), w.Client, w.Owner, w.Inventory, removal.Options{})
		w.must(err)
		w.Inventory = removed.Inventory
		if len(removed.Denied) > 0 {
			t.Fatalf("denied: %v", removed.Denied)
		}
		if !removed.Done() {
			return fmt.Errorf("left: %v", removed.Waiting)
		}
		return nil
	})
	crd := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	w.must(w.Dynamic.Resource(crd).Delete(t.Context(), "mice."+w.Namespace+".example.org", metav1.DeleteOptions{}))
}

// acceptable dry-runs all manifests that would be printed.
func (w *world) acceptable(request rights.Request) {
	w.T.Helper()
	parts, err := rights.Manifests(request)
	w.must(err)
	tried := 0
	for _, part := range rights.Parts() {
		for _, object := range parts[part] {
			gvk := object.GroupVersionKind()
			resource := w.Dynamic.Resource(gvk.GroupVersion().WithResource(rights.Plural(gvk.Kind)))
			_, err := resource.Namespace(object.GetNamespace()).Create(w.T.Context(), object, metav1.CreateOptions{
				DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
			})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				w.T.Errorf("%s %s: %v", gvk.Kind, object.GetName(), err)
			}
			tried++
		}
	}
	if tried != 10 {
		w.T.Errorf("%d objects, want a namespace, an account, and two roles with their bindings in two parts", tried)
	}
}

// A bundle that contains its namespace is installed with the printed manifests: the
// namespace is created with it and is its own.
func TestPrintedForABundleWithItsNamespace(t *testing.T) {
	w := newWorld(t)
	const bundle = `
apiVersion: v1
kind: Namespace
metadata: {name: NS-own, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NS-own}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: NS-own}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`
	own, before := w.Namespace+"-own", w.Plan(w.Objects(bundle))
	parts, err := rights.Manifests(rights.Request{
		Deployment: w.Owner, ServiceAccount: "installer", InstallNamespace: own, Objects: slices.Concat(before.Objects(), before.Unreadable),
	})
	w.must(err)
	for _, part := range rights.Parts() {
		for _, object := range parts[part] {
			gvk := object.GroupVersionKind()
			resource := w.Dynamic.Resource(gvk.GroupVersion().WithResource(rights.Plural(gvk.Kind))).Namespace(object.GetNamespace())
			if _, err := resource.Create(t.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatalf("%s %s: %v", gvk.Kind, object.GetName(), err)
			}
			if object.GetNamespace() == "" && object.GetName() != w.Namespace {
				t.Cleanup(func() { _ = resource.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}) })
			}
		}
	}
	if _, err := w.Admin.CoreV1().Namespaces().Get(t.Context(), own, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the namespace is there before the bundle: %v", err)
	}
	workspace.Eventually(t, "what is printed to be enough", func() error {
		if said := w.refusals(bundle); said != "" {
			return errors.New(said)
		}
		return nil
	})
	w.MustApply(bundle)
	t.Cleanup(func() { _ = w.Admin.CoreV1().Namespaces().Delete(context.Background(), own, metav1.DeleteOptions{}) })
	made, err := w.Admin.CoreV1().Namespaces().Get(t.Context(), own, metav1.GetOptions{})
	w.must(err)
	if made.Labels[inventory.LabelDeployment] != w.Owner.Name || made.Annotations[inventory.AnnotationOrphaned] != "" {
		t.Errorf("it is not the bundle's: %v, %v", made.Labels, made.Annotations)
	}
}

var applyAs = tenant.ApplyOptions{Manager: "satchel/facts"}

func tenantRef(resource, namespace, name string) tenant.Ref {
	return tenant.Ref{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespace: namespace, Name: name}
}

// The facts about authorization that package rights relies on.
func TestFactsOfAuthorization(t *testing.T) {
	w := newWorld(t)
	w.hold([]rights.Grant{
		{Namespace: "", Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}}},
		{Namespace: w.Namespace, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"one"}, Verbs: []string{"create", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{w.Namespace}, Verbs: []string{"get"}},
		}},
	})
	configMap := func(name string) error {
		object := w.Objects(workspace.TwoMaps)[0]
		object.SetName(name)
		object.SetNamespace(w.Namespace)
		_, err := w.Client.Apply(t.Context(), tenantRef("configmaps", w.Namespace, name), object, applyAs)
		return err
	}
	if err := configMap("one"); err != nil {
		t.Errorf("creating by name: %v", err)
	}
	if err := configMap("two"); !apierrors.IsForbidden(err) {
		t.Errorf("creating another name: %v", err)
	}
	if _, err := w.Client.Metadata(t.Context(), tenantRef("namespaces", "", w.Namespace)); err != nil {
		t.Errorf("a Role in a namespace allows to get it: %v", err)
	}
	status, err := w.Client.Rules(t.Context(), "-")
	w.must(err)
	nodes, maps := false, false
	for _, rule := range status.ResourceRules {
		nodes = nodes || slices.Contains(rule.Resources, "nodes")
		maps = maps || slices.Contains(rule.Resources, "configmaps")
	}
	if !nodes || maps || status.Incomplete {
		t.Errorf("the rules of no namespace are %+v", status)
	}
	if _, err := w.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "-"}}},
		metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a namespace of that name: %v", err)
	}
}

// The rule for plurals holds for all kinds that Kubernetes serves.
func TestPluralsOfKubernetes(t *testing.T) {
	w := newWorld(t)
	groups, lists, err := w.Admin.Discovery().ServerGroupsAndResources()
	w.must(err)
	found := 0
	for _, list := range lists {
		if strings.Contains(list.GroupVersion, "example.org") {
			continue // of other tests
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") && resource.Name != rights.Plural(resource.Kind) {
				t.Errorf("%s %s is called %s, not %s", list.GroupVersion, resource.Kind, resource.Name, rights.Plural(resource.Kind))
			}
			found++
		}
	}
	if found < 50 || len(groups) < 10 {
		t.Errorf("%d resources of %d groups: the test sees too little", found, len(groups))
	}
}
