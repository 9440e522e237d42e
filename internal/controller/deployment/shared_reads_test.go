// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// inTime repeats what depends on plans that are made within one second, which a busy machine may miss.
func inTime(t *testing.T, what string, shared func() (bool, string)) {
	t.Helper()
	said := ""
	for range 5 {
		done := false
		if done, said = shared(); done {
			return
		}
	}
	t.Errorf("%s: %s", what, said)
}

// Deployments that are created at once do not each read the objects that do not exist yet.
func TestInstallsShareReads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	inTime(t, "fewer than half as many reads as objects, and some of them LISTs", func() (bool, string) { return r.installsShareReads(t) })
}

func (r *rig) installsShareReads(t *testing.T) (bool, string) {
	t.Helper()
	namespace := r.namespace(t)
	const count = 20
	name := func(i int) string { return fmt.Sprintf("app%02d", i) }
	revisions := map[string]string{}
	for i := range count {
		files := fstest.MapFS{"a.yaml": configMap(name(i), "one"), "b.yaml": file("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name(i) + "}\n")}
		revisions[name(i)] = r.publish(t, namespace, name(i), "v1", files).Revision
	}
	mark := r.mark(t)
	keys := make([]client.ObjectKey, count)
	for i := range count {
		keys[i] = r.deploy(t, namespace, name(i), rarely)
	}
	for i, key := range keys {
		r.ready(t, key, revisions[name(i)])
		r.holds(t, namespace, name(i), "one")
	}
	lists := 0
	reads := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		read := e.ImpersonatedUser == "system:serviceaccount:"+namespace+":installer" && !strings.Contains(e.RequestURI, "labelSelector") &&
			(e.Verb == "get" || e.Verb == "list") && (e.Resource == "configmaps" || e.Resource == "serviceaccounts")
		if read && e.Verb == "list" {
			lists++
		}
		return read
	})
	return len(reads) <= count && lists > 0, fmt.Sprintf("%d deployments read %d times, of which %d LISTs, before their first apply: %v", count, len(reads), lists, reads)
}

// An object that another client creates after a shared list was read is not taken over: the apply fails, and the next plan is
// refused as if the object had been there before.
func TestCreatedAfterASharedList(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	inTime(t, "the object of another client is found by the apply", func() (bool, string) { return r.createdAfterASharedList(t) })
}

func (r *rig) createdAfterASharedList(t *testing.T) (bool, string) {
	t.Helper()
	namespace := r.namespace(t)
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("one", "ours"), "b.yaml": configMap("two", "ours")})
	key := r.deploy(t, namespace, "app", both(rarely, left))
	t.Cleanup(func() { // the running controller removes it
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/labels"}]`))
		_ = r.admin.Patch(context.WithoutCancel(t.Context()), &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, patch)
	})
	d := r.drive(t, key, beforeWriteTo("/configmaps/one", func() {
		theirs := aConfigMap(namespace, "one")
		theirs.Object["data"] = map[string]any{"value": "theirs"}
		if err := r.admin.Create(t.Context(), theirs, client.FieldOwner("theirs")); err != nil {
			t.Error(err)
		}
	}))
	account, err := d.Tenants.Client(tenant.Identity{Namespace: namespace, ServiceAccount: "installer"})
	if err != nil {
		t.Fatal(err)
	}
	collection := tenant.Ref{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: namespace}
	account.For("other").Listed(t.Context(), collection) // asks for ConfigMaps at the same time
	d.reconcile(t)
	found := d.deployment(t)
	if message := conditions.GetMessage(found, v1alpha1.AppliedCondition); !strings.Contains(message, "ConfigMap "+namespace+"/one exists already and was written by theirs") {
		return false, "after the apply:\n" + describe(found)
	}
	d.now = d.now.Add(2 * time.Minute)
	d.reconcile(t)
	found = d.deployment(t)
	message := conditions.GetMessage(found, v1alpha1.PlannedCondition)
	if conditions.GetReason(found, v1alpha1.PlannedCondition) != v1alpha1.ReasonPlanRefused || !strings.Contains(message, "exists already and was written by theirs") {
		t.Errorf("after the next plan:\n%s", describe(found))
	}
	if got := r.value(t, t.Context(), namespace, "one"); got != "theirs" {
		t.Errorf("the object of another client has the value %q", got)
	}
	return true, ""
}
