// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// canary is in a Secret, and has to be nowhere else but where a bundle puts it.
const canary = "c4n4ry-0f-th3-t3n4nt"

// variables has the variables of a bundle read from the Secret of one name, and from a ConfigMap that need not be there.
func variables(secret string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		d.Spec.Processors = []v1alpha1.Processor{{Variables: &v1alpha1.VariablesProcessor{ValuesFrom: []v1alpha1.VariablesReference{
			{Kind: "Secret", Name: secret}, {Kind: "ConfigMap", Name: "more", Optional: true},
		}}}}
	}
}

// keep writes a Secret.
func (r *rig) keep(t *testing.T, namespace, name string, data map[string]string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
	if err := r.admin.Create(t.Context(), secret); err == nil {
		return
	}
	if err := r.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// A change of a Secret is applied within seconds, long before the interval is over, as another plan of the same revision; an
// optional input takes effect when it is created. A deleted Secret is reported at once: the applied objects stay, and their
// drift is corrected, until it exists again.
func TestInputsAreFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.keep(t, namespace, "db", map[string]string{"password": canary + "-1", "unused.key": "x"})
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "${password}${more:=}")})
	key := r.deploy(t, namespace, "app", both(seldom, variables("db")))
	first := r.ready(t, key, published.Revision)
	r.holds(t, namespace, "a", canary+"-1")
	if plan := first.Status.Plan; plan.Content != "" || plan.Inputs == "" || plan.Digest == "" {
		t.Errorf("the plan of a Secret: %+v", plan)
	}

	began := time.Now()
	r.keep(t, namespace, "db", map[string]string{"password": canary + "-2"})
	r.holds(t, namespace, "a", canary+"-2")
	t.Logf("the change was followed after %s", time.Since(began).Round(time.Millisecond))
	second := r.until(t, key, "another plan of the same revision", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Plan.Digest != first.Status.Plan.Digest && isReady(d) && len(d.Status.History) == 2
	})
	if was, is := first.Status.Plan, second.Status.Plan; was.Inputs == is.Inputs || was.Revision != is.Revision || second.Status.History[0].Plan == second.Status.History[1].Plan {
		t.Errorf("the plan was %+v, and is %+v, of the history %+v", was, is, second.Status.History)
	}

	r.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "more"}, Data: map[string]string{"more": "-more"}})
	r.holds(t, namespace, "a", canary+"-2-more")

	r.delete(t, object("v1", "Secret", namespace, "db"))
	r.unready(t, key, v1alpha1.ReasonInputNotFound)
	r.until(t, key, "it says what is missing", says("secret "+namespace+"/db does not exist: create it, or correct spec.processors[0].variables.valuesFrom[0]", "stays applied and is kept from drifting"))
	r.delete(t, aConfigMap(namespace, "a"))
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": "now"}
	})
	r.holds(t, namespace, "a", canary+"-2-more")
	r.keep(t, namespace, "db", map[string]string{"password": canary + "-3"})
	r.ready(t, key, published.Revision)
	r.holds(t, namespace, "a", canary+"-3-more")
	r.nowhere(t, key)
}

// nowhere looks for the canary in the status of a deployment and in the events about it.
func (r *rig) nowhere(t *testing.T, d interface{ String() string }) {
	t.Helper()
	namespace, name, _ := strings.Cut(d.String(), "/")
	found := r.must(t, object("satchel.dev/v1alpha1", "BundleDeployment", namespace, name))
	status, err := json.Marshal(found.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(r.events(t, namespace, name), string(status)) {
		if strings.Contains(text, canary) || strings.Contains(text, "c4n4ry") {
			t.Errorf("this is told of a Secret:\n%s", text)
		}
	}
}

// reader is a ServiceAccount that may write ConfigMaps and get the Secret db by name, with more verbs on that Secret.
func (r *rig) reader(t *testing.T, verbs ...string) (namespace string, role *rbacv1.Role) {
	t.Helper()
	namespace = r.namespace(t)
	role = &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"db"}, Verbs: verbs},
	}}
	r.create(t, role)
	r.bind(t, namespace, "reader", "reader")
	return namespace, role
}

func asReader(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "reader" }

// With the permission to watch one Secret by name, and to list none, a change is applied at once. All requests impersonate
// the ServiceAccount, and nothing is listed.
func TestT7InputsAreReadAsTheServiceAccount(t *testing.T) {
	r := newRig(t)
	mark := r.mark(t)
	namespace, _ := r.reader(t, "get", "watch")
	r.keep(t, namespace, "db", map[string]string{"password": "one-1"})
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "${password}")})
	key := r.deploy(t, namespace, "app", both(seldom, both(asReader, variables("db"))))
	r.ready(t, key, published.Revision)
	r.keep(t, namespace, "db", map[string]string{"password": "two-2"})
	r.holds(t, namespace, "a", "two-2")
	if d := r.ready(t, key, published.Revision); d.Status.Drift != nil {
		t.Errorf("it is all watched: %+v", d.Status.Drift)
	}
	asked := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.User == controllerUser && e.Resource == "secrets" && e.Namespace == namespace
	})
	verbs := map[string]int{}
	for _, e := range asked {
		verbs[e.Verb]++
		if e.ImpersonatedUser != "system:serviceaccount:"+namespace+":reader" || e.Verb != "get" && e.Verb != "watch" || e.Code != 200 {
			t.Errorf("not as the ServiceAccount: %s", e)
		}
		if query, err := url.ParseQuery(e.RequestURI[strings.IndexByte(e.RequestURI, '?')+1:]); e.Verb == "watch" && (err != nil || query.Get("fieldSelector") != "metadata.name=db") {
			t.Errorf("not by name: %s", e)
		}
	}
	if verbs["get"] == 0 || verbs["watch"] == 0 {
		t.Errorf("%v", verbs)
	}
}

// Without the permission to watch its Secret, a change is applied at the interval, and the status says so. A missing Secret
// is looked for every few seconds, whatever the interval.
func TestT5InputsWithoutPermissionToWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace, role := r.reader(t, "get")
	r.keep(t, namespace, "db", map[string]string{"password": canary + "-1"})
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "${password}")})
	key := r.deploy(t, namespace, "app", both(quick, both(asReader, variables("db"))))
	r.ready(t, key, published.Revision)
	gap := "secrets db in " + namespace + ": service account " + namespace + "/reader may not watch it"
	r.until(t, key, "the status names the gap", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Drift != nil && slices.Contains(d.Status.Drift.AtInterval, gap)
	})
	r.keep(t, namespace, "db", map[string]string{"password": canary + "-2"})
	r.holds(t, namespace, "a", canary+"-2")

	r.edit(t, key, seldom)
	r.until(t, key, "the longer interval applies", isReady)
	role.Rules[1].ResourceNames = []string{"another"}
	if err := r.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": "now"}
	})
	r.unready(t, key, v1alpha1.ReasonInputNotFound)
	r.until(t, key, "it says which permission is missing", says("serviceaccount "+namespace+"/reader may not get secret "+namespace+"/db, which spec.processors[0].variables.valuesFrom[0] names: grant it"))
	role.Rules[1].ResourceNames = []string{"db"}
	if err := r.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	r.until(t, key, "it recovers by itself", isReady)
	r.nowhere(t, key)
}

// The API server may quote values of a Secret from an object that it refuses: messages do not show them.
func TestI8RefusedSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.keep(t, namespace, "db", map[string]string{"kind": "ClusterIP"})
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"a.yaml": file("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: \"${kind}\", ports: [{port: 80}]}"),
	})
	key := r.deploy(t, namespace, "app", both(quick, variables("db")))
	r.ready(t, key, published.Revision)
	r.keep(t, namespace, "db", map[string]string{"kind": canary})
	r.unready(t, key, v1alpha1.ReasonDryRunFailed)
	r.until(t, key, "the message says what is wrong", says("Service", "(redacted)", "spec.type"))
	r.nowhere(t, key)
	r.keep(t, namespace, "db", map[string]string{"kind": "ClusterIP"})
	r.ready(t, key, published.Revision)
}
