// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// controllerUser is the user name of the controller.
const controllerUser = "system:serviceaccount:satchel-system:bundle-deployment-controller"

func TestT1T2AccountsTheCRDRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	for name, account := range map[string]string{
		"absent": "", "blank": " ", "of another namespace": "x:y", "path": "../b", "folder": "b/deployer",
		"group": "system:masters", "long": strings.Repeat("a", 300),
	} {
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
		d.Spec.ServiceAccountName = account
		d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "app"}
		if err := r.admin.Create(t.Context(), d); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it refused as invalid", name, err)
		}
	}
}

func TestT1T2AccountThatDoesNotExist(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mark := r.mark(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	// A binding left behind must be of no use.
	if err := installation.Admin(t.Context(), r.admin, namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	r.delete(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installer"}})
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonAccountNotFound)
	want := "serviceaccount " + namespace + "/installer does not exist: create it, or correct spec.serviceAccountName"
	if got := conditions.GetMessage(d, "Ready"); got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
	impersonated := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return strings.HasPrefix(e.ImpersonatedUser, "system:serviceaccount:"+namespace+":") ||
			e.User == controllerUser && e.Namespace == namespace && isWrite(e) && e.Resource != "bundledeployments" && e.Resource != "events"
	})
	if len(impersonated) > 0 {
		t.Errorf("requests on behalf of a missing ServiceAccount: %v", impersonated)
	}
	if err := installation.Admin(t.Context(), r.admin, namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	r.ready(t, key, published.Revision)
}

// trespass are objects that a ServiceAccount of one namespace may not touch, each with
// the expected message.
var trespass = map[string]struct{ manifest, says string }{
	"neighbour": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}", `in namespace "default": create, delete, get, patch configmaps (x)`},
	"system":    {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: kube-system}", `in namespace "kube-system": create, delete, get, patch configmaps (x)`},
	"role":      {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: trespass}\nrules: []", "clusterroles.rbac.authorization.k8s.io (trespass)"},
	"crd":       {string(crd("trespass.example.org").Data), "create, get, patch customresourcedefinitions.apiextensions.k8s.io (gadgets.trespass.example.org)"},
	"webhook": {"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: trespass}",
		"validatingwebhookconfigurations.admissionregistration.k8s.io (trespass)"},
	"mutating": {"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: trespass}",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io (trespass)"},
	"priority":  {"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: trespass}\nvalue: 1", "priorityclasses.scheduling.k8s.io (trespass)"},
	"namespace": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: trespass}", " namespaces (trespass)"},
	"api": {"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.trespass.example.org}\nspec: {group: trespass.example.org, version: v1, groupPriorityMinimum: 1, versionPriority: 1}",
		"apiservices.apiregistration.k8s.io (v1.trespass.example.org)"},
}

func TestT5ObjectsBeyondTheOwnNamespace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	if err := installation.Account(t.Context(), r.admin, namespace, "installer", "edit", namespace); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"own.yaml": configMap("own", "one")}
	for name, object := range trespass {
		files[name+".yaml"] = file(object.manifest)
	}
	mark := r.mark(t)
	r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	if !conditions.IsFalse(d, v1alpha1.PlannedCondition) {
		t.Errorf("Planned is not False:\n%s", describe(d))
	}
	message := conditions.GetMessage(d, v1alpha1.PlannedCondition)
	for name, object := range trespass {
		if !strings.Contains(message, object.says) {
			t.Errorf("%s: %q is not in the message:\n%s", name, object.says, message)
		}
	}
	for _, resource := range []string{"configmaps", "clusterroles", "customresourcedefinitions", "priorityclasses", "apiservices", "namespaces"} {
		if !strings.Contains(message, `"`+resource) && !strings.Contains(message, " "+resource) {
			t.Errorf("the permission on %s is not named:\n%s", resource, message)
		}
	}
	if r.get(t, aConfigMap(namespace, "own")) || d.Status.Inventory.Count > 0 {
		t.Error("something was written although the plan is refused")
	}
	writes := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.User == controllerUser && isWrite(e) && (e.Namespace == namespace && e.ImpersonatedUser != "" || strings.Contains(e.RequestURI, "trespass"))
	})
	if len(writes) > 0 {
		t.Errorf("written although the plan is refused: %v", writes)
	}
}

// granting are bundles that grant more permissions than the ServiceAccount has.
var granting = map[string]string{
	"everything": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]",
	"escalate":   "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: NAME}\nrules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate, bind]}]",
	"impersonate": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\n" +
		"rules: [{apiGroups: [''], resources: [users, serviceaccounts], verbs: [impersonate]}]",
	"cluster-admin": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: NAME}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: installer, namespace: NS}]",
	"admin here": "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: NAME}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: installer, namespace: NS}]",
}

func TestT6RightsBeyondTheAccounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, manifest := range granting {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := controlplane.NewNamespace(t, r.cp)
			r.create(t, &rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{Name: namespace},
				Rules: []rbacv1.PolicyRule{
					{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
					{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
				},
			})
			if err := installation.Account(t.Context(), r.admin, namespace, "installer", namespace, ""); err != nil {
				t.Fatal(err)
			}
			manifest = strings.NewReplacer("NAME", namespace+"-grant", "NS", namespace).Replace(manifest)
			r.publish(t, namespace, "app", "v1", fstest.MapFS{"grant.yaml": file(manifest), "a.yaml": configMap("a", "one")})
			key := r.deploy(t, namespace, "app", quick)
			d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
			message := conditions.GetMessage(d, v1alpha1.PlannedCondition)
			if !strings.Contains(message, namespace+"-grant") || !strings.Contains(message, "does not hold") && !strings.Contains(message, "may not grant permissions") {
				t.Errorf("the message does not name the object and the reason: %s", message)
			}
			if r.get(t, aConfigMap(namespace, "a")) || lists(t, d) > 0 {
				t.Error("part of the bundle was written")
			}
			for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
				in := ""
				if !strings.HasPrefix(kind, "Cluster") {
					in = namespace
				}
				if r.get(t, object("rbac.authorization.k8s.io/v1", kind, in, namespace+"-grant")) {
					t.Errorf("the %s was granted", kind)
				}
			}
		})
	}
}

func TestT13OneObjectTwoDeployments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	bundle := func(value string) fstest.MapFS {
		return fstest.MapFS{"a.yaml": configMap("shared", value), "crd.yaml": crd(group)}
	}
	first := r.publish(t, namespace, "first", "v1", bundle("first"))
	r.ready(t, r.deploy(t, namespace, "first", quick), first.Revision)
	version := r.must(t, crdObject(group)).GetResourceVersion()

	r.publish(t, namespace, "second", "v1", bundle("second"))
	d := r.unready(t, r.deploy(t, namespace, "second", quick), v1alpha1.ReasonPlanRefused)
	message := conditions.GetMessage(d, v1alpha1.PlannedCondition)
	for _, object := range []string{"ConfigMap " + namespace + "/shared", "CustomResourceDefinition.apiextensions.k8s.io gadgets." + group} {
		if !strings.Contains(message, object+" exists already and belongs to BundleDeployment "+namespace+"/first") {
			t.Errorf("the owner of %s is not named:\n%s", object, message)
		}
	}
	if got := r.value(t, t.Context(), namespace, "shared"); got != "first" {
		t.Errorf("the object has the value of %q", got)
	}
	if r.must(t, crdObject(group)).GetResourceVersion() != version {
		t.Error("the CRD of another deployment was written")
	}
}

func TestT13LabelsForgedBeforehand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	forged := aConfigMap(namespace, "a")
	forged.SetLabels(map[string]string{v1alpha1.DeploymentLabel: "app", v1alpha1.NamespaceLabel: namespace})
	r.create(t, forged)
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	if message := conditions.GetMessage(d, v1alpha1.PlannedCondition); !strings.Contains(message, "carries the labels of this deployment, which never applied it") {
		t.Errorf("the message does not say what is wrong: %s", message)
	}
	r.remove(t, key)
	if !r.get(t, aConfigMap(namespace, "a")) {
		t.Error("the removal took an object that was never applied")
	}
}

// lists is how many objects the inventory of a deployment lists, applied or planned.
func lists(t *testing.T, d *v1alpha1.BundleDeployment) int {
	t.Helper()
	if d.Status.Inventory == nil {
		return 0
	}
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		t.Fatal(err)
	}
	return listed.Len()
}

func TestT5WhatMayBeReadAndNotWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	r.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list", "create"}},
	}})
	if err := installation.Account(t.Context(), r.admin, namespace, "installer", namespace, namespace); err != nil {
		t.Fatal(err)
	}
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"a.yaml": configMap("a", "one"), "b.yaml": file("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}"),
	})
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	want := `the ServiceAccount cannot, in namespace "` + namespace + `": delete, patch services (s): grant this to service account "` + namespace +
		`/installer" by a Role and a RoleBinding there`
	if message := conditions.GetMessage(d, v1alpha1.PlannedCondition); message != want {
		t.Errorf("the message is %q, want %q", message, want)
	}
	if r.get(t, aConfigMap(namespace, "a")) || lists(t, d) > 0 {
		t.Error("part of the bundle was written")
	}
	role := object("rbac.authorization.k8s.io/v1", "ClusterRole", "", namespace)
	r.patch(t, role, `{"rules":[{"apiGroups":[""],"resources":["configmaps","services"],"verbs":["*"]}]}`)
	r.ready(t, key, published.Revision)
}
