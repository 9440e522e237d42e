// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// asking makes a deployment ask for approval.
func asking(mode v1alpha1.ApprovalMode) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) { d.Spec.Approval = &v1alpha1.ApprovalOptions{Mode: mode} }
}

// decide creates a decision about a plan of a deployment.
func (r *rig) decide(t *testing.T, key client.ObjectKey, plan string, change ...func(*v1alpha1.BundleApproval)) *v1alpha1.BundleApproval {
	t.Helper()
	approval := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, GenerateName: key.Name + "-"}}
	approval.Spec = v1alpha1.BundleApprovalSpec{Deployment: key.Name, Plan: plan, Decision: v1alpha1.DecisionApprove}
	for _, one := range change {
		one(approval)
	}
	if err := r.admin.Create(t.Context(), approval); err != nil {
		t.Fatal(err)
	}
	return approval
}

func denies(reason string) func(*v1alpha1.BundleApproval) {
	return func(a *v1alpha1.BundleApproval) {
		a.Spec.Decision, a.Spec.Reason = v1alpha1.DecisionDeny, reason
	}
}

// awaits waits until a plan for a revision waits for an approval, and returns its digest.
func (r *rig) awaits(t *testing.T, key client.ObjectKey, revision, reason string) (*v1alpha1.BundleDeployment, string) {
	t.Helper()
	d := r.until(t, key, reason+" for "+revision, func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, v1alpha1.ApprovalPendingCondition) == reason && d.Status.Plan != nil && d.Status.Plan.Revision == revision
	})
	t.Logf("ApprovalPending says: %s", conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition))
	return d, d.Status.Plan.Digest
}

// consumed waits until an approval was consumed.
func (r *rig) consumed(t *testing.T, approval *v1alpha1.BundleApproval) {
	t.Helper()
	var found v1alpha1.BundleApproval
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(approval), &found); err != nil || found.Status.ConsumedTime == nil {
		t.Errorf("the approval of what was carried out is not consumed: %+v (%v)", found.Status, err)
	}
}

// writesAs are the writes since a mark that impersonate a ServiceAccount of a namespace.
func (r *rig) writesAs(t *testing.T, namespace, account string, since controlplane.AuditMark) []string {
	t.Helper()
	var found []string
	for _, e := range r.audit(t, since, func(e controlplane.AuditEvent) bool {
		return isWrite(e) && e.ImpersonatedUser == "system:serviceaccount:"+namespace+":"+account
	}) {
		found = append(found, fmt.Sprintf("%s %s/%s: %d", e.Verb, e.Resource, e.Name, e.Code))
	}
	return found
}

// Nothing is written before the first plan is approved; drift is corrected while the
// next one waits; and each approval executes its plan once.
func TestApprovalManual(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	mark := r.mark(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", both(quick, asking(v1alpha1.ApprovalManual)))
	d, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
	if !conditions.IsFalse(d, meta.ReadyCondition) || conditions.GetReason(d, meta.ReadyCondition) != v1alpha1.ReasonApprovalPending || conditions.IsTrue(d, meta.StalledCondition) {
		t.Errorf("before the first revision:\n%s", describe(d))
	}
	if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, "1 to create") || !strings.Contains(message, "satchel approve app -n "+namespace+" --plan "+digest) {
		t.Errorf("what is asked for, and how to give it, is not said: %s", message)
	}
	if written := r.writesAs(t, namespace, "installer", mark); len(written) > 0 {
		t.Errorf("written before the approval: %v", written)
	}
	approval := r.decide(t, key, digest)
	d = r.ready(t, key, first.Revision)
	r.consumed(t, approval)
	if conditions.Has(d, v1alpha1.ApprovalPendingCondition) || d.Status.Internal.Executed.Approval != approval.Name || d.Status.Internal.Executed.Plan != digest || d.Status.History[0].Plan != digest {
		t.Errorf("executed %+v, history %+v:\n%s", d.Status.Internal.Executed, d.Status.History[0], describe(d))
	}
	r.told(t, namespace, "Approved: the plan "+digest+" for revision "+first.Revision+" is executed, as bundleapproval "+approval.Name+" allows")

	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two"), "b.yaml": configMap("b", "two")})
	d, next := r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
	if next == digest || !conditions.IsTrue(d, meta.ReadyCondition) || d.Status.Applied.Revision != first.Revision {
		t.Errorf("while the upgrade waits:\n%s", describe(d))
	}
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"drifted"}}`)
	r.holds(t, namespace, "a", "one")

	denial := r.decide(t, key, next, denies("not on a Friday"))
	d, _ = r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalDenied)
	if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, "not on a Friday") || !conditions.IsTrue(d, meta.ReadyCondition) {
		t.Errorf("denied: %s\n%s", message, describe(d))
	}
	late := r.decide(t, key, next) // a denial wins
	r.handled(t, key)
	if value := r.value(t, t.Context(), namespace, "a"); value != "one" {
		t.Errorf("a denied plan was executed: %s", value)
	}
	r.delete(t, denial)
	r.ready(t, key, second.Revision)
	r.consumed(t, late)
	if value := r.value(t, t.Context(), namespace, "a"); value != "two" {
		t.Errorf("approved, but the value is %s", value)
	}
}

// An edit after the approval makes another plan, which is not executed, nor is the
// approved one when the edit is reverted after another plan was executed.
func TestApprovalOfWhatWasEditedSince(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", both(quick, asking(v1alpha1.ApprovalManual)))
	_, previewed := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	_, edited := r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
	stale := r.decide(t, key, previewed)
	edits := map[string]func(*v1alpha1.BundleDeployment){
		"limit":      func(d *v1alpha1.BundleDeployment) { d.Spec.Prune.Enabled = new(false) },
		"collisions": func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.CollisionProtection = v1alpha1.CollisionNone },
		"definitions": func(d *v1alpha1.BundleDeployment) {
			d.Spec.Apply.CRDs = &v1alpha1.CRDOptions{DeletionPolicy: v1alpha1.DeletionDelete}
		},
		"removal":  func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = v1alpha1.DeletionOrphan },
		"recreate": func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.Recreate = v1alpha1.RecreateOnImmutableChange },
	}
	seen := map[string]bool{previewed: true, edited: true}
	for name, edit := range edits {
		r.edit(t, key, edit)
		d := r.until(t, key, "another plan after an edit of "+name, func(d *v1alpha1.BundleDeployment) bool {
			return d.Status.Plan != nil && !seen[d.Status.Plan.Digest]
		})
		seen[d.Status.Plan.Digest] = true
	}
	r.handled(t, key)
	if value := r.value(t, t.Context(), namespace, "a"); value != "" {
		t.Fatalf("executed without an approval: %s", value)
	}
	var found v1alpha1.BundleApproval
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(stale), &found); err != nil || found.Status.ConsumedTime != nil {
		t.Errorf("the approval of another plan: %+v (%v)", found.Status, err)
	}
}

// An approval that has expired allows nothing.
func TestApprovalExpired(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", both(rarely, asking(v1alpha1.ApprovalManual)))
	_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
	past := metav1.NewTime(time.Now().Add(-time.Minute))
	r.decide(t, key, digest, func(a *v1alpha1.BundleApproval) { a.Spec.ExpirationTime = &past })
	r.handled(t, key)
	if value := r.value(t, t.Context(), namespace, "a"); value != "" {
		t.Fatalf("an expired approval allowed %s", value)
	}
	future := metav1.NewTime(time.Now().Add(time.Hour))
	r.decide(t, key, digest, func(a *v1alpha1.BundleApproval) { a.Spec.ExpirationTime = &future })
	r.ready(t, key, first.Revision)
}

// A held prune is executed when the plan is approved, although the mode is Automatic; a
// denied one stays held.
func TestApprovalReleasesAHeldPrune(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	bundle := fstest.MapFS{}
	for i := range 8 {
		bundle[fmt.Sprintf("%d.yaml", i)] = configMap(fmt.Sprintf("m%d", i), "one")
	}
	first := r.publish(t, namespace, "app", "v1", bundle)
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"0.yaml": configMap("m0", "two")})
	r.ready(t, key, second.Revision)
	d := r.until(t, key, "held", isHeld)
	digest := d.Status.Plan.Digest
	if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, "satchel approve app -n "+namespace+" --plan "+digest) {
		t.Errorf("how to release it is not said: %s", message)
	}
	denial := r.decide(t, key, digest, denies("these are precious"))
	r.until(t, key, "denied", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, v1alpha1.ApprovalPendingCondition) == v1alpha1.ReasonApprovalDenied
	})
	r.delete(t, denial)
	r.until(t, key, "held again", isHeld)
	approval := r.decide(t, key, digest)
	r.gone(t, aConfigMap(namespace, "m1"))
	r.gone(t, aConfigMap(namespace, "m7"))
	r.until(t, key, "nothing pending", func(d *v1alpha1.BundleDeployment) bool { return !conditions.Has(d, v1alpha1.ApprovalPendingCondition) })
	r.consumed(t, approval)
}

// escalating are upgrades of a bundle, and what each needs approval for; nothing if it
// passes.
func escalating(namespace, group string) map[string]struct {
	reason string
	bundle fstest.MapFS
	spec   func(*v1alpha1.BundleDeployment)
	asks   []string
} {
	with := func(files fstest.MapFS, more ...string) fstest.MapFS {
		bundle := fstest.MapFS{"role.yaml": role("reader", "get"), "b.yaml": binding("reader"), "crd.yaml": crd(group), "a.yaml": configMap("a", "two")}
		for name, one := range files {
			bundle[name] = one
		}
		for _, name := range more {
			delete(bundle, name)
		}
		return bundle
	}
	return map[string]struct {
		reason string
		bundle fstest.MapFS
		spec   func(*v1alpha1.BundleDeployment)
		asks   []string
	}{
		"plain upgrade":     {"content may change, and come", with(fstest.MapFS{"c.yaml": configMap("c", "new")}), nil, nil},
		"fewer permissions": {"a removed binding is a deletion", with(fstest.MapFS{"role.yaml": role("reader", "list"), "more.yaml": role("other", "list")}, "b.yaml"), nil, []string{"would be deleted"}},
		"new permissions":   {"a subject gets more permissions", with(fstest.MapFS{"role.yaml": role("reader", "get, delete")}), nil, []string{"new permissions", "delete", "configmaps"}},
		"new binding":       {"another subject gets the permissions", with(fstest.MapFS{"c.yaml": file(bindingText("another", "reader"))}), nil, []string{"new permissions", "another"}},
		"definition":        {"all resources of the kind are affected", with(fstest.MapFS{"crd.yaml": file(strings.Replace(string(crd(group).Data), "type: object, properties: {spec", "type: object, properties: {more: {type: string}, spec", 1))}), nil, []string{"changes of CRDs", "gadgets." + group}},
		"deletion":          {"what is gone is gone", with(nil, "a.yaml"), nil, []string{"1 object would be deleted: ConfigMap " + namespace + "/a"}},
		"account": {"another ServiceAccount may have other permissions", with(nil), func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "second" },
			[]string{`spec.serviceAccountName changes from "installer" to "second"`}},
		"policy": {"CRDs would be deleted one day, with all resources", with(nil), func(d *v1alpha1.BundleDeployment) {
			d.Spec.Apply.CRDs = &v1alpha1.CRDOptions{DeletionPolicy: v1alpha1.DeletionDelete}
		}, []string{"CustomResourceDefinitions would be deleted"}},
	}
}

func role(name, verbs string) *fstest.MapFile {
	return file("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: " + name + "}\nrules:\n- {apiGroups: [\"\"], resources: [configmaps], verbs: [" + verbs + "]}\n")
}

func bindingText(name, role string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + name + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + role + "}\nsubjects: [{kind: ServiceAccount, name: " + name + "}]\n"
}

func binding(name string) *fstest.MapFile { return file(bindingText(name, name)) }

// With OnEscalation an upgrade passes without approval, unless it grants new permissions,
// changes CRDs, deletes objects, or uses another ServiceAccount: then the message names
// it.
func TestApprovalOnEscalation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name := range escalating("", "example.org") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			group := r.group(t, namespace)
			tc := escalating(namespace, group)[name]
			if err := installation.Admin(t.Context(), r.admin, namespace, "second"); err != nil {
				t.Fatal(err)
			}
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"role.yaml": role("reader", "get"), "b.yaml": binding("reader"), "crd.yaml": crd(group), "a.yaml": configMap("a", "one")})
			key := r.deploy(t, namespace, "app", both(quick, asking(v1alpha1.ApprovalOnEscalation)))
			_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
			r.decide(t, key, digest)
			r.ready(t, key, first.Revision)
			if tc.spec != nil {
				r.edit(t, key, tc.spec)
			}
			second := r.publish(t, namespace, "app", "v2", tc.bundle)
			if len(tc.asks) == 0 {
				if d := r.ready(t, key, second.Revision); d.Status.Internal.Executed.Approval != "" {
					t.Errorf("%s: approved by %s", tc.reason, d.Status.Internal.Executed.Approval)
				}
				return
			}
			d, digest := r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
			message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition)
			for _, asks := range tc.asks {
				if !strings.Contains(message, asks) {
					t.Errorf("%s: %q is not said: %s", tc.reason, asks, message)
				}
			}
			if d.Status.Applied.Revision != first.Revision || !conditions.IsTrue(d, meta.ReadyCondition) {
				t.Errorf("while it waits:\n%s", describe(d))
			}
			r.decide(t, key, digest)
			r.ready(t, key, second.Revision)
		})
	}
}
