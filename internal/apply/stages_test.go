// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// withDefinition is a bundle with a CRD and an object of its kind. GROUP stands
// for a group that only one test uses.
const withDefinition = `
apiVersion: GROUP/v1
kind: Widget
metadata: {name: first}
spec: {size: 1}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
`

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	definers    = rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"*"}}
)

// widgets returns the bundle with a group of its own, and cleans up its CRD.
func (w *world) widgets() string {
	w.T.Helper()
	group := w.Namespace + ".example.org"
	w.T.Cleanup(func() {
		_ = w.Dynamic.Resource(definitions).Delete(context.Background(), "widgets."+group, metav1.DeleteOptions{})
	})
	return strings.ReplaceAll(withDefinition, "GROUP", group)
}

func (w *world) widget() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.Namespace + ".example.org", Version: "v1", Resource: "widgets"}
}

func (w *world) definition() (*unstructured.Unstructured, error) {
	return w.Dynamic.Resource(definitions).Get(w.T.Context(), "widgets."+w.Namespace+".example.org", metav1.GetOptions{})
}

// A CRD and its resource are applied at once: the kind is waited for, without
// a failed attempt.
func TestF20DefinitionAndResource(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	bundle := w.widgets()
	start := time.Now()
	result := w.ApplyObjects(w.Objects(bundle), apply.Options{})
	if !result.Complete() {
		t.Fatalf("stopped at %q: %s %v", result.Stage, result.Pending, result.Errors())
	}
	t.Logf("CRD, resource and ConfigMap applied in %s", time.Since(start).Round(time.Millisecond))
	var order []string
	for _, outcome := range result.Outcomes {
		order = append(order, outcome.ID.Kind)
	}
	if want := []string{"CustomResourceDefinition", "ConfigMap", "Widget"}; !slices.Equal(want, order) {
		t.Errorf("applied in the order %v, want %v", order, want)
	}
	if p := w.Plan(w.Objects(bundle)); !p.Quiet() {
		t.Errorf("after the install: %s", p.Summary())
	}
}

// A CRD that cannot be established stops the objects that need it, with the reason, and does not
// block the worker longer than configured; when it recovers, the next apply continues.
func TestF20NeverEstablished(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	bundle := w.widgets()
	// Another CRD of the group has the plural already: the names are not accepted.
	clash := strings.NewReplacer("Widget", "Gadget", "name: widgets.", "name: gadgets.", "plural: widgets, singular: widget", "plural: gadgets, singular: gadget, shortNames: [widgets]").
		Replace(bundle)
	squatter := w.Objects(clash)[1]
	ctx := t.Context()
	if _, err := w.Dynamic.Resource(definitions).Create(ctx, squatter, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	drop := func() {
		_ = w.Dynamic.Resource(definitions).Delete(context.Background(), squatter.GetName(), metav1.DeleteOptions{})
	}
	t.Cleanup(drop)
	workspace.Eventually(t, "the names are taken", func() error {
		found, err := w.Dynamic.Resource(definitions).Get(ctx, squatter.GetName(), metav1.GetOptions{})
		if err == nil && !strings.Contains(asText(t, found), `"Established"`) {
			err = fmtError("not established")
		}
		return err
	})
	start := time.Now()
	result := w.ApplyObjects(w.Objects(bundle), apply.Options{EstablishTimeout: 500 * time.Millisecond})
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("held the worker for %s", took)
	}
	if result.Complete() || !strings.Contains(result.Pending, "is not established") || !strings.Contains(result.Pending, "widgets") {
		t.Fatalf("stage %q pending %q, want it to wait for the CRD and say why", result.Stage, result.Pending)
	}
	drop()
	workspace.Eventually(t, "goes on", func() error {
		result = w.ApplyObjects(w.Objects(bundle), apply.Options{})
		if !result.Complete() {
			return fmtError(result.Pending)
		}
		return nil
	})
}

func asText(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Every violation is found at once, and nothing has been changed.
func TestViolationsAllAtOnce(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.Patch("application/apply-patch+yaml", "one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"b"}}`, "helm")
	objects := w.Objects(workspace.TwoMaps + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two}
---
apiVersion: monitoring.example.org/v1
kind: Monitor
metadata: {name: web}
---
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: web}
---
apiVersion: v1
kind: Secret
metadata: {name: unquoted}
stringData: {pin: 4711}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: elsewhere, namespace: NS-nowhere}
`)
	p := w.Plan(objects)
	var found []string
	for _, violation := range p.Violations {
		found = append(found, string(violation.Rule)+" "+violation.String())
	}
	all := strings.Join(found, "\n")
	for _, words := range []string{
		"Collision ConfigMap " + w.Namespace + "/one exists already and was written by helm",
		"Duplicate ConfigMap " + w.Namespace + "/two",
		"KindMissing Monitor.monitoring.example.org",
		`the CRD that defines Monitor in group "monitoring.example.org"`,
		"it is served as v1",
		"Invalid completing Secret " + w.Namespace + "/unquoted: stringData.pin is not a string: quote it",
	} {
		if !strings.Contains(all, words) {
			t.Errorf("missing %q in:\n%s", words, all)
		}
	}
	// The account may not read namespaces: whether they exist is left to the API server.
	if strings.Contains(all, "nowhere") && !strings.Contains(all, "PermissionMissing") {
		t.Errorf("the namespace is judged without a look at it:\n%s", all)
	}
	w.GrantCluster("installer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps"}, Verbs: []string{"get"}})
	w.refusedWith(`
apiVersion: v1
kind: ConfigMap
metadata: {name: elsewhere, namespace: NS-nowhere}
`, violation.NamespaceMissing, w.Namespace+"-nowhere", "spec.target.createNamespace")
}

// An empty render is refused and prunes nothing.
func TestEmptyRender(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	p := w.Plan(nil)
	if len(p.Violations) != 1 || p.Violations[0].Rule != violation.EmptyRender || len(p.Prune) != 0 {
		t.Errorf("got violations %v and %d stages to prune", p.Violations, len(p.Prune))
	}
}

// One refused object does not keep the others of its stage from being
// applied; later stages do not start, and the next apply does only the rest.
func TestF5PartialApply(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	bad := application + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: refused}
data: {"not a key": x}
`
	result := w.Apply(bad)
	errs := result.Errors()
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "ConfigMap "+w.Namespace+"/refused: ") {
		t.Fatalf("got %v", errs)
	}
	if result.Stage != "foundations" || result.Count(apply.Created) != 4 {
		t.Errorf("stage %q, %v", result.Stage, workspace.Kinds(result))
	}
	result = w.MustApply(application)
	if result.Count(apply.Unchanged) != 4 || result.Count(apply.Created) != 3 {
		t.Errorf("the next apply did %v", workspace.Kinds(result))
	}
	pruned := w.prune(application)
	if len(pruned.Denied)+len(pruned.Waiting) > 0 || w.Inventory.Len() != 7 {
		t.Errorf("the refused object stays: %+v, %d objects", pruned, w.Inventory.Len())
	}
}

// A Secret that the API server refuses is reported without its values.
func TestM23SecretValuesStayOut(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	for name, manifest := range map[string]string{
		"not base64":    `{apiVersion: v1, kind: Secret, metadata: {name: bad}, data: {k: "CANARY !!"}}`,
		"wrong type":    `{apiVersion: v1, kind: Secret, metadata: {name: bad}, data: {k: {deep: CANARY}}}`,
		"bad key":       `{apiVersion: v1, kind: Secret, metadata: {name: bad}, data: {"CANARY/key with space": Y2FuYXJ5}}`,
		"wrong kind":    `{apiVersion: v1, kind: Secret, metadata: {name: bad}, type: kubernetes.io/tls, stringData: {tls.crt: CANARY}}`,
		"unknown field": `{apiVersion: v1, kind: Secret, metadata: {name: bad}, data: [CANARY]}`,
	} {
		t.Run(name, func(t *testing.T) {
			result := w.Apply(manifest)
			errs := result.Errors()
			if len(errs) != 1 {
				t.Fatalf("got %v, want one error", result.Outcomes)
			}
			message := errs[0].Error()
			if name != "bad key" && strings.Contains(message, "CANARY") {
				t.Errorf("the value is in %q", message)
			}
			if !strings.Contains(message, "Secret "+w.Namespace+"/bad") {
				t.Errorf("%q does not name the object", message)
			}
			w.Inventory = inventory.Inventory{}
		})
	}
}

// A change of an immutable field fails clearly, and nothing is deleted.
func TestF27ImmutableField(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(scaled)
	result := w.Apply(strings.ReplaceAll(scaled, "app: web", "app: other"))
	errs := result.Errors()
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "immutable") || !strings.Contains(errs[0].Error(), "delete the object") {
		t.Errorf("got %v", errs)
	}
	if w.Replicas() != 1 {
		t.Error("the Deployment was touched")
	}
}
