// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// unguarded labels namespaces in which the admission policies do not apply, as if they were not installed.
const unguarded = "example.org/without-policies"

// exceptUnguarded makes the bindings of the admission policies leave such namespaces out.
func exceptUnguarded(ctx context.Context, admin client.Client) error {
	objects, err := installation.Render(installation.Root() + "/config/admission")
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"matchResources":{"namespaceSelector":{"matchExpressions":[{"key":%q,"operator":"DoesNotExist"}]}}}}`, unguarded)
	for _, o := range objects {
		if o.GetKind() != "ValidatingAdmissionPolicyBinding" {
			continue
		}
		if err := admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return err
		}
	}
	return nil
}

// eachWay runs a test in a namespace that demands approval, with the admission policies and without them.
func (r *rig) eachWay(t *testing.T, test func(t *testing.T, namespace string, policies bool)) {
	t.Helper()
	for name, policies := range map[string]bool{"with policies": true, "without policies": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			labels := `"satchel.dev/approval":"required"`
			if !policies {
				labels += fmt.Sprintf(`,%q:""`, unguarded)
			}
			r.patch(t, object("v1", "Namespace", "", namespace), `{"metadata":{"labels":{`+labels+`}}}`)
			test(t, namespace, policies)
		})
	}
}

// approvalFile is a BundleApproval as a bundle would have it.
func approvalFile(namespace, deployment, plan string) *fstest.MapFile {
	return file(fmt.Sprintf("apiVersion: satchel.dev/v1alpha1\nkind: BundleApproval\nmetadata: {name: smuggled, namespace: %s}\nspec: {deployment: %s, plan: %q, decision: Approve}\n", namespace, deployment, plan))
}

// A bundle approves no plan of another deployment, and does not remove the label that requires approval.
func TestT24BundlesApproveNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.eachWay(t, func(t *testing.T, namespace string, _ bool) {
		victim := r.publish(t, namespace, "victim", "v1", fstest.MapFS{"v.yaml": configMap("v", "one")})
		victimKey := r.deploy(t, namespace, "victim", both(quick, asking(v1alpha1.ApprovalManual)))
		_, digest := r.awaits(t, victimKey, victim.Revision, v1alpha1.ReasonApprovalRequired)
		mark := r.mark(t)
		for name, tc := range map[string]struct {
			mode   v1alpha1.ApprovalMode
			bundle *fstest.MapFile
			says   string
		}{
			"approves":  {v1alpha1.ApprovalOnEscalation, approvalFile(namespace, "victim", digest), "approves or denies a plan, which no bundle may do"},
			"unlabels":  {v1alpha1.ApprovalOnEscalation, file("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n"), "the bundle would remove it"},
			"relabels":  {v1alpha1.ApprovalManual, file("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + ", labels: {satchel.dev/approval: never}}\n"), "the bundle would remove it"},
			"automatic": {v1alpha1.ApprovalAutomatic, approvalFile(namespace, "victim", digest), "approves or denies a plan, which no bundle may do"},
		} {
			published := r.publish(t, namespace, name, "v1", fstest.MapFS{"a.yaml": tc.bundle, "b.yaml": configMap(name, "one")})
			key := r.deploy(t, namespace, name, both(quick, asking(tc.mode), func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.CollisionProtection = v1alpha1.CollisionNone }))
			d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
			if message := describe(d); !strings.Contains(message, tc.says) || d.Status.Attempted.Revision != published.Revision {
				t.Errorf("%s: %s", name, message)
			}
		}
		r.handled(t, victimKey)
		var approvals v1alpha1.BundleApprovalList
		if err := r.admin.List(t.Context(), &approvals, client.InNamespace(namespace)); err != nil || len(approvals.Items) > 0 {
			t.Errorf("approvals %v, %v", approvals.Items, err)
		}
		if written := r.writesAs(t, namespace, "installer", mark); len(written) > 0 || r.value(t, t.Context(), namespace, "v") != "" {
			t.Errorf("written: %v", written)
		}
	})
}

// The admission policy refuses the same to each request that carries the extra, whatever the permissions, and
// to no other one.
func TestT24PolicyOnWritesOfBundles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.eachWay(t, func(t *testing.T, namespace string, policies bool) {
		as := func(extra map[string][]string) client.Client {
			config := rest.CopyConfig(r.cp.RESTConfig())
			config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":installer", Extra: extra}
			c, err := installation.Client(config)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		bundle, person := as(map[string][]string{"satchel.dev/deployment": {namespace + "/app"}}), as(map[string][]string{"example.org/other": {"x"}})
		plan := "sha256:" + strings.Repeat("a", 64)
		approval := func(name string) *v1alpha1.BundleApproval {
			return &v1alpha1.BundleApproval{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec:       v1alpha1.BundleApprovalSpec{Deployment: "app", Plan: plan, Decision: v1alpha1.DecisionApprove},
			}
		}
		r.create(t, approval("theirs"))
		self := func() *corev1.Namespace { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}} }
		setLabel := func(c client.Client, name, value string) error {
			return c.Patch(t.Context(), self(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"satchel.dev/`+name+`":`+value+`}}}`)))
		}
		relabel := func(c client.Client, value string) error { return setLabel(c, "approval", value) }
		if err := setLabel(r.admin, "signatures", `"required"`); err != nil {
			t.Fatal(err)
		}
		for name, tc := range map[string]struct {
			forbidden bool
			do        func() error
		}{
			"create an approval": {true, func() error { return bundle.Create(t.Context(), approval("mine")) }},
			"change an approval": {true, func() error {
				return bundle.Patch(t.Context(), approval("theirs"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
			}},
			"delete an approval":     {true, func() error { return bundle.Delete(t.Context(), approval("theirs")) }},
			"take the label off":     {true, func() error { return relabel(bundle, "null") }},
			"weaken the label":       {true, func() error { return relabel(bundle, `"never"`) }},
			"no signatures any more": {true, func() error { return setLabel(bundle, "signatures", "null") }}, // T29
			"weaker signatures":      {true, func() error { return setLabel(bundle, "signatures", `"never"`) }},
			"delete the namespace":   {true, func() error { return bundle.Delete(t.Context(), self(), client.DryRunAll) }},
			"another label": {false, func() error {
				return bundle.Patch(t.Context(), self(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
			}},
			"a person who may":        {false, func() error { return person.Create(t.Context(), approval("person")) }},
			"a person, and the label": {false, func() error { return relabel(person, `"required"`) }},
		} {
			err := tc.do()
			if forbidden := apierrors.IsForbidden(err); forbidden != (tc.forbidden && policies) || err != nil && !forbidden && policies {
				t.Errorf("%s: %v", name, err)
			}
			if err != nil && strings.Contains(err.Error(), "resulted in error") {
				t.Errorf("%s: the policy is wrong: %v", name, err)
			}
			_ = relabel(r.admin, `"required"`)
			_ = setLabel(r.admin, "signatures", `"required"`)
			_ = client.IgnoreAlreadyExists(r.admin.Create(t.Context(), approval("theirs")))
		}
	})
}

// Each write of a bundle, deletions included, says in the audit log for which deployment it was done.
func TestT24AuditNamesTheDeployment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	mark := r.mark(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.ready(t, key, second.Revision)
	r.gone(t, aConfigMap(namespace, "b"))
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"drifted"}}`)
	r.holds(t, namespace, "a", "two")
	r.remove(t, key)
	writes := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return isWrite(e) && e.ImpersonatedUser == "system:serviceaccount:"+namespace+":installer"
	})
	if len(writes) < 5 {
		t.Errorf("only %d writes", len(writes))
	}
	for _, e := range writes {
		if extra := e.Extra["satchel.dev/deployment"]; len(extra) != 1 || extra[0] != namespace+"/app" {
			t.Errorf("%s names %v", e, extra)
		}
	}
}
