// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// outage is how the artifact server answers for one namespace, and how often it did.
type outage struct {
	status int
	asked  atomic.Int32
}

// takeDown has the artifact server answer with a status only for a namespace, until the end of the
// test or until it is deleted from r.down.
func (r *rig) takeDown(t *testing.T, namespace string, status int) *outage {
	t.Helper()
	of := &outage{status: status}
	r.down.Store(namespace, of)
	t.Cleanup(func() { r.down.Delete(namespace) })
	return of
}

// outage finds that of a path; nil when the server is well.
func (r *rig) outage(path string) *outage {
	var found *outage
	r.down.Range(func(namespace, of any) bool {
		if strings.Contains(path, "/"+namespace.(string)+"/") { //nolint:forcetypeassert // only names are kept
			found = of.(*outage) //nolint:forcetypeassert // and only outages of them
		}
		return found == nil
	})
	return found
}

// quick makes a deployment look at its objects, and retry, every second.
func quick(d *v1alpha1.BundleDeployment) {
	d.Spec.Interval = v1alpha1.Duration{Duration: time.Second}
	d.Spec.RetryInterval = v1alpha1.Duration{Duration: time.Second}
}

// both applies two changes.
func both(changes ...func(*v1alpha1.BundleDeployment)) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		for _, change := range changes {
			change(d)
		}
	}
}

// object is a bare object of a kind, to be read or deleted.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func aConfigMap(namespace, name string) *unstructured.Unstructured {
	return object("v1", "ConfigMap", namespace, name)
}

// get reads an object; false when it does not exist.
func (r *rig) get(t *testing.T, o *unstructured.Unstructured) bool {
	t.Helper()
	err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// must reads an object that has to be there.
func (r *rig) must(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if !r.get(t, o) {
		t.Fatalf("%s %s/%s is not there", o.GetKind(), o.GetNamespace(), o.GetName())
	}
	return o
}

// patch changes an object as a user would, by a JSON merge patch.
func (r *rig) patch(t *testing.T, o *unstructured.Unstructured, merge string) {
	t.Helper()
	if err := r.admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(merge)), client.FieldOwner("other-client")); err != nil {
		t.Fatal(err)
	}
}

// create makes an object from its manifest, as the administrator; the end of the test deletes it.
func (r *rig) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := r.admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.admin.Delete(context.WithoutCancel(t.Context()), o) })
}

func (r *rig) delete(t *testing.T, o client.Object) {
	t.Helper()
	if err := r.admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// gone waits until an object does not exist.
func (r *rig) gone(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	r.eventually(t, t.Context(), o.GetKind()+" "+o.GetName()+" is gone", func(context.Context) (bool, string) {
		return !r.get(t, o), fmt.Sprint(o.Object["metadata"])
	})
}

// holds waits until a ConfigMap has a value.
func (r *rig) holds(t *testing.T, namespace, name, want string) {
	t.Helper()
	r.eventually(t, t.Context(), "ConfigMap "+name+" has the value "+want, func(ctx context.Context) (bool, string) {
		value := r.value(t, ctx, namespace, name)
		return value == want, value
	})
}

// startRemoval deletes a deployment without waiting.
func (r *rig) startRemoval(t *testing.T, key client.ObjectKey) {
	t.Helper()
	r.delete(t, &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
}

// events lists reason and note of the events about an object, oldest first, each
// as often as it was recorded.
func (r *rig) events(t *testing.T, namespace, about string) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := r.admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var found []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.Regarding.Name != about {
			continue
		}
		times := 1
		if e.Series != nil {
			times = int(e.Series.Count)
		}
		for range times {
			found = append(found, e.Reason+": "+e.Note)
		}
	}
	return found
}

// told waits for an event about the deployment app; events are recorded after the status.
func (r *rig) told(t *testing.T, namespace, text string) {
	t.Helper()
	r.eventually(t, t.Context(), "an event says "+text, func(context.Context) (bool, string) {
		all := strings.Join(r.events(t, namespace, "app"), "\n")
		return strings.Contains(all, text), all
	})
}

// audit returns the requests since a mark that satisfy a condition.
func (r *rig) audit(t *testing.T, since controlplane.AuditMark, wanted func(controlplane.AuditEvent) bool) []controlplane.AuditEvent {
	t.Helper()
	all, err := r.cp.Audit(since)
	if err != nil {
		t.Fatal(err)
	}
	var found []controlplane.AuditEvent
	for _, e := range all {
		if wanted(e) {
			found = append(found, e)
		}
	}
	return found
}

func (r *rig) mark(t *testing.T) controlplane.AuditMark {
	t.Helper()
	r.cp.RequireControl(t)
	mark, err := r.cp.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// looks waits until the running controller has completed n more reconciles as an
// account. It returns the requests of the controller meanwhile for the namespace and
// for objects named after it.
func (r *rig) looks(t *testing.T, namespace, account string, n int) []controlplane.AuditEvent {
	t.Helper()
	mark := r.mark(t)
	var all []controlplane.AuditEvent
	r.eventually(t, t.Context(), fmt.Sprintf("%d looks", n), func(context.Context) (bool, string) {
		all = r.audit(t, mark, func(e controlplane.AuditEvent) bool {
			return e.User == controllerUser && strings.Contains(e.RequestURI, namespace)
		})
		begun := 0
		for _, e := range all { // each begins with the account
			if e.Verb == "get" && e.Resource == "serviceaccounts" && e.Name == account {
				begun++
			}
		}
		return begun > n+1, fmt.Sprintf("%d begun", begun) // one may have been under way
	})
	return all
}

// handled requests a reconcile and waits until it is over.
func (r *rig) handled(t *testing.T, key client.ObjectKey) {
	t.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, meta.ReconcileRequestAnnotation, at)
	})
	r.until(t, key, "the request is handled", func(d *v1alpha1.BundleDeployment) bool { return d.Status.LastHandledReconcileAt == at })
}

// isWrite tells whether a request changes something.
func isWrite(e controlplane.AuditEvent) bool {
	switch e.Verb {
	case "get", "list", "watch":
		return false
	}
	return !strings.HasPrefix(e.Resource, "selfsubject") && !strings.Contains(e.RequestURI, "dryRun=All")
}

// policy refuses requests in a namespace; the function lifts it.
type policy struct {
	operation admissionv1.OperationType
	resource  string
	// rule is CEL; what does not satisfy it is refused, or warned of.
	rule, message string
	warn          bool
}

// refuse installs a policy and waits until it works: until the probe, which a
// dry run sends, is answered as the policy says.
func (r *rig) refuse(t *testing.T, namespace string, p policy, probe func(context.Context) error) (lift func()) {
	t.Helper()
	action := admissionv1.Deny
	if p.warn {
		action = admissionv1.Warn
	}
	definition := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	definition.Spec.FailurePolicy = new(admissionv1.Fail)
	definition.Spec.MatchConstraints = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{p.operation},
			Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{p.resource}},
		}}},
	}
	definition.Spec.Validations = []admissionv1.Validation{{Expression: p.rule, MessageExpression: p.message}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	binding.Spec.PolicyName = namespace
	binding.Spec.ValidationActions = []admissionv1.ValidationAction{action}
	r.create(t, definition)
	r.create(t, binding)
	if probe == nil {
		return nil
	}
	r.eventually(t, t.Context(), "the policy works", func(ctx context.Context) (bool, string) {
		err := probe(ctx)
		return apierrors.IsForbidden(err) || apierrors.IsInvalid(err), fmt.Sprint(err)
	})
	return func() { r.delete(t, binding) }
}

func crdObject(group string) *unstructured.Unstructured {
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gadgets."+group)
}

// group is an API group for one test; its CRD is deleted at the end.
func (r *rig) group(t *testing.T, namespace string) string {
	t.Helper()
	group := namespace + ".example.org"
	t.Cleanup(func() { _ = r.admin.Delete(context.WithoutCancel(t.Context()), crdObject(group)) })
	return group
}
