// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// someone is a client of a user with roles in a namespace.
func (r *rig) someone(t *testing.T, namespace, name string, roles ...string) client.Client {
	t.Helper()
	user := name + "-" + namespace
	for _, role := range roles {
		r.create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	config := rest.CopyConfig(r.cp.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := installation.Client(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// guarded is a deployment in a namespace that requires approval, with its users. One
// revision is approved and runs, and the next one waits.
type guarded struct {
	*rig

	key              client.ObjectKey
	tenant, approver client.Client
	first            *v1alpha1.BundleDeployment // as it was with the first revision applied
	used             *v1alpha1.BundleApproval
}

func (r *rig) guarded(t *testing.T) *guarded {
	t.Helper()
	namespace := controlplane.NewNamespace(t, r.cp)
	r.patch(t, object("v1", "Namespace", "", namespace), `{"metadata":{"labels":{"satchel.dev/approval":"required"}}}`)
	r.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installer"}})
	r.create(t, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
	})
	r.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "installer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "installer"}},
	})
	r.create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "status-" + namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"satchel.dev"}, Resources: []string{"bundledeployments/status"}, Verbs: []string{"*"}}},
	})
	g := &guarded{
		rig: r, tenant: r.someone(t, namespace, "tenant", "edit", "satchel-edit", "satchel-view", "status-"+namespace),
		approver: r.someone(t, namespace, "approver", "satchel-approve"),
	}
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	g.key = r.deploy(t, namespace, "app", both(quick, asking(v1alpha1.ApprovalManual)))
	_, digest := r.awaits(t, g.key, first.Revision, v1alpha1.ReasonApprovalRequired)
	g.used = g.approves(t, digest)
	g.first = r.ready(t, g.key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.awaits(t, g.key, second.Revision, v1alpha1.ReasonApprovalRequired)
	return g
}

// approves approves a plan as the approver.
func (g *guarded) approves(t *testing.T, digest string) *v1alpha1.BundleApproval {
	t.Helper()
	approval := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: g.key.Namespace, GenerateName: "app-"}}
	approval.Spec = v1alpha1.BundleApprovalSpec{Deployment: g.key.Name, Plan: digest, Decision: v1alpha1.DecisionApprove}
	if err := g.approver.Create(t.Context(), approval); err != nil {
		t.Fatal(err)
	}
	return approval
}

// merge patches the deployment, or its status, as the tenant.
func (g *guarded) merge(ctx context.Context, patch any, status bool) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.key.Namespace, Name: g.key.Name}}
	if status {
		return g.tenant.Status().Patch(ctx, d, client.RawPatch(types.MergePatchType, data))
	}
	return g.tenant.Patch(ctx, d, client.RawPatch(types.MergePatchType, data))
}

// newDeployment is a deployment of the source as a tenant would create it.
func (g *guarded) newDeployment(name string, mode v1alpha1.ApprovalMode) *v1alpha1.BundleDeployment {
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.key.Namespace, Name: name}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "app"}
	if mode != "" {
		asking(mode)(d)
	}
	return d
}

// apply writes a deployment by server-side apply, with force, as the tenant.
func (g *guarded) apply(ctx context.Context, spec string) error {
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"satchel.dev/v1alpha1","kind":"BundleDeployment","metadata":{"name":%q,"namespace":%q},"spec":%s}`, g.key.Name, g.key.Namespace, spec)
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		return err
	}
	return g.tenant.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("tenant"), client.ForceOwnership)
}

type fields = map[string]any

// edits are attempts of a tenant; refused tells which the API server rejects.
func (g *guarded) edits() map[string]struct {
	refused bool
	edit    func(context.Context) error
} {
	spec := func(change fields) func(context.Context) error {
		return func(ctx context.Context) error { return g.merge(ctx, fields{"spec": change}, false) }
	}
	status := func(change any) func(context.Context) error {
		return func(ctx context.Context) error { return g.merge(ctx, fields{"status": change}, true) }
	}
	decide := func(change func(*v1alpha1.BundleApproval)) func(context.Context) error {
		return func(ctx context.Context) error {
			one := g.used.DeepCopy()
			change(one)
			return g.tenant.Update(ctx, one)
		}
	}
	return map[string]struct {
		refused bool
		edit    func(context.Context) error
	}{
		"the mode":              {true, spec(fields{"approval": fields{"mode": "Automatic"}})},
		"a weaker mode":         {true, spec(fields{"approval": fields{"mode": "OnEscalation"}})},
		"no approval":           {true, spec(fields{"approval": nil})},
		"no mode, and the rest": {true, spec(fields{"approval": fields{"mode": nil}, "suspend": false})},
		"apply": {true, func(ctx context.Context) error {
			return g.apply(ctx, `{"serviceAccountName":"installer","sourceRef":{"kind":"BundleSource","name":"app"},"approval":{"mode":"Automatic"}}`)
		}},
		"apply what stays": {false, func(ctx context.Context) error {
			return g.apply(ctx, `{"serviceAccountName":"installer","sourceRef":{"kind":"BundleSource","name":"app"},"approval":{"mode":"Manual"},"apply":{"collisionProtection":"None"}}`)
		}},
		"pruning":          {false, spec(fields{"prune": fields{"limit": "100%"}})},
		"suspend":          {false, spec(fields{"suspend": true})},
		"resume":           {false, spec(fields{"suspend": false})},
		"another interval": {false, spec(fields{"interval": "2s"})},
		"a request": {false, func(ctx context.Context) error {
			return g.merge(ctx, fields{"metadata": fields{"annotations": fields{meta.ReconcileRequestAnnotation: "now"}}}, false)
		}},
		"labels and annotations": {false, func(ctx context.Context) error {
			return g.merge(ctx, fields{"metadata": fields{"labels": fields{"satchel.dev/approval": "none"}, "annotations": fields{"satchel.dev/approved": "true"}}}, false)
		}},
		"a forged record":   {true, status(fields{"executed": fields{"plan": g.first.Status.Internal.Executed.Plan, "key": g.first.Status.Internal.Executed.Key}})},
		"no record":         {true, status(fields{"executed": nil})},
		"an old status":     {true, status(g.first.Status)},
		"a forged rollback": {true, status(fields{"rejected": fields{"revision": "x"}})},
		"a whole status": {true, func(ctx context.Context) error {
			var d v1alpha1.BundleDeployment
			if err := g.admin.Get(ctx, g.key, &d); err != nil {
				return err
			}
			d.Status = g.first.Status
			return g.tenant.Status().Update(ctx, &d)
		}},
		"an approval of his own": {true, func(ctx context.Context) error {
			one := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: g.key.Namespace, Name: "mine"}, Spec: g.used.Spec}
			return g.tenant.Create(ctx, one)
		}},
		"another's approval":   {true, decide(func(a *v1alpha1.BundleApproval) { a.Labels = fieldsOf("x") })},
		"deleting an approval": {true, func(ctx context.Context) error { return g.tenant.Delete(ctx, g.used.DeepCopy()) }},
		"the namespace": {true, func(ctx context.Context) error {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.key.Namespace}}
			return g.tenant.Patch(ctx, ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"satchel.dev/approval":null}}}`)))
		}},
		"another deployment": {true, func(ctx context.Context) error {
			return g.tenant.Create(ctx, g.newDeployment("app2", v1alpha1.ApprovalAutomatic))
		}},
		"another, without a mode": {true, func(ctx context.Context) error { return g.tenant.Create(ctx, g.newDeployment("app2", "")) }},
		"another that asks": {false, func(ctx context.Context) error {
			return g.tenant.Create(ctx, g.newDeployment("app2", v1alpha1.ApprovalManual))
		}},
	}
}

func fieldsOf(name string) map[string]string { return map[string]string{name: name} }

// planned are the writes of the installer that execute a plan, except deletions, and releases instead of deletions: another deployment
// of the namespace wants the object.
func (g *guarded) planned(t *testing.T, since controlplane.AuditMark) []controlplane.AuditEvent {
	t.Helper()
	return g.audit(t, since, func(e controlplane.AuditEvent) bool {
		return isWrite(e) && e.Verb != "delete" && !strings.Contains(e.RequestURI, inventory.OrphanManager) && e.ImpersonatedUser == "system:serviceaccount:"+g.key.Namespace+":installer"
	})
}

// A user who may edit a deployment, and even its status, but not approve, gets no plan
// executed in a namespace that requires approval: neither by any edit, nor by deleting
// and recreating it. The audit log shows it.
func TestTenantCannotGetAPlanExecuted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.guarded(t)
	mark := r.mark(t)
	for name, tc := range g.edits() {
		err := tc.edit(t.Context())
		refused := apierrors.IsForbidden(err)
		if refused != tc.refused || err != nil && !refused {
			t.Errorf("%s: %v, want it refused: %v", name, err, tc.refused)
		}
		if err != nil && strings.Contains(err.Error(), "resulted in error") {
			t.Errorf("%s: the policy is wrong: %v", name, err)
		}
		r.edit(t, g.key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = false })
		r.handled(t, g.key)
	}
	if err := g.tenant.Delete(t.Context(), g.newDeployment("app", "")); err != nil {
		t.Fatal(err)
	}
	r.gone(t, object("satchel.dev/v1alpha1", "BundleDeployment", g.key.Namespace, "app"))
	for mode, refused := range map[v1alpha1.ApprovalMode]bool{v1alpha1.ApprovalAutomatic: true, "": true, v1alpha1.ApprovalManual: false} {
		if err := g.tenant.Create(t.Context(), g.newDeployment("app", mode)); apierrors.IsForbidden(err) != refused {
			t.Errorf("created again with the mode %q: %v", mode, err)
		}
	}
	r.until(t, g.key, "created again", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Plan != nil })
	again := r.publish(t, g.key.Namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	_, digest := r.awaits(t, g.key, again.Revision, v1alpha1.ReasonApprovalRequired)
	r.handled(t, g.key)
	if written := g.planned(t, mark); len(written) > 0 {
		t.Errorf("executed without an approval: %v", written)
	}
	if digest == g.used.Spec.Plan {
		t.Error("what was deleted and created again has the digest of the plan that was approved before")
	}
	g.approves(t, digest)
	r.ready(t, g.key, again.Revision)
	if written := g.planned(t, mark); len(written) == 0 {
		t.Error("the audit log shows nothing of what was approved either")
	}
}
