// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// beside is another deployment of the same account.
func (w *world) beside(name string) *world {
	other := *w.Workspace
	other.Owner, other.Client = inventory.Owner{Namespace: w.Namespace, Name: name}, w.Client.For(name)
	other.Inventory = inventory.Inventory{}
	return &world{Workspace: &other}
}

// share has other deployments of the account ask for the ConfigMaps of the namespace, so that the next plan finds a list.
func (w *world) share() {
	w.T.Helper()
	for _, name := range []string{"x", "y"} {
		other := w.beside(name)
		other.Plan(other.Objects(strings.ReplaceAll(oneMap, "name: one", "name: of-"+name)))
	}
}

// whileShared makes a plan of another deployment of the account while a list is shared. It does so again if the machine was too busy
// for that.
func (w *world) whileShared(name string, planned func(*world) plan.Plan) (*world, plan.Plan) {
	w.T.Helper()
	for range 5 {
		w.share()
		other := w.beside(name)
		if p := planned(other); len(onlyCreates(p)) > 0 {
			return other, p
		}
	}
	w.T.Fatal("no plan used a shared list")
	return nil, plan.Plan{}
}

// onlyCreates tells which actions of a plan have the condition that their object does not exist.
func onlyCreates(p plan.Plan) []string {
	var names []string
	for action := range p.Actions() {
		if action.OnlyCreate {
			names = append(names, action.Name)
		}
	}
	return names
}

// Deployments of an account that are planned at once read what does not exist with one LIST.
func TestSharedList(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	var read []string
	three, p := w.whileShared("three", func(three *world) plan.Plan {
		mark := w.AuditMark()
		p := three.Plan(three.Objects(oneMap))
		read = w.reads(mark, "configmaps")
		return p
	})
	if len(read) != 0 {
		t.Errorf("the plan read %v, want nothing", read)
	}
	if got := onlyCreates(p); !slices.Equal(got, []string{"one"}) {
		t.Errorf("created on condition: %v, want one", got)
	}
	result, err := apply.Apply(t.Context(), three.Client, p, apply.Options{})
	if err != nil || result.Count(apply.Created) != 1 || w.data("one")["colour"] != "blue" {
		t.Fatalf("got %v, %v", result.Outcomes, err)
	}
	// What the account created is on the list: the collision is found before anything is written.
	w.beside("four").refusedWith(oneMap, violation.Collision, "BundleDeployment "+w.Namespace+"/three")
}

// reads are the requests for a resource in the namespace since a mark.
func (w *world) reads(mark controlplane.AuditMark, resource string) []string {
	w.T.Helper()
	events, err := w.ControlPlane.Audit(mark)
	if err != nil {
		w.T.Fatal(err)
	}
	var found []string
	for _, event := range events {
		if event.Namespace == w.Namespace && event.Resource == resource && (event.Verb == "get" || event.Verb == "list") {
			found = append(found, event.Verb+" "+event.Name)
		}
	}
	return found
}

// Where a shared list does not apply, objects are read as if the deployment were alone, and created without a condition.
func TestNotShared(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	cases := map[string]func(t *testing.T) *world{
		"another account": func(t *testing.T) *world {
			t.Helper()
			other := w.beside("a")
			other.Client = w.Account("another").For("a")
			other.Grant("another", workspace.Everything...)
			return other
		},
		"an account that may not list": func(t *testing.T) *world {
			t.Helper()
			other := *w.Workspace
			other.Client = w.Account("reader")
			reads := &world{Workspace: &other}
			reads.Grant("reader", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch", "create"}})
			reads.share()
			return reads.beside("b")
		},
		"an object that was planned before": func(t *testing.T) *world {
			t.Helper()
			other := w.beside("c")
			other.Inventory = other.Plan(other.Objects(oneMap)).Inventory
			return other
		},
		"an object that exists": func(t *testing.T) *world {
			t.Helper()
			w.Patch(types.ApplyPatchType, "one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","annotations":{"satchel.dev/orphaned":"true"}}}`, "former")
			t.Cleanup(func() {
				if err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Delete(w.T.Context(), "one", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
			w.Client.Unlist(tenant.Ref{Resource: configMaps, Namespace: w.Namespace})
			return w.beside("d")
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			w.Client.Unlist(tenant.Ref{Resource: configMaps, Namespace: w.Namespace})
			w.share()
			asks := cases[name](t)
			w.share()
			mark := w.AuditMark()
			p := asks.Plan(asks.Objects(oneMap))
			if got := w.reads(mark, "configmaps"); !slices.Contains(got, "get one") {
				t.Errorf("read %v, want a GET of the object", got)
			}
			if got := onlyCreates(p); len(got) > 0 || p.Len() != 1 {
				t.Errorf("created on condition: %v; %s", got, p.Summary())
			}
		})
	}
}

// An object that another client creates after the list is not written. The next plan finds it, and is refused or adopts it as
// any other.
func TestCreatedAfterTheList(t *testing.T) {
	const theirs = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"theirs":"kept"}}`
	cases := map[string]struct {
		protection ownership.Protection
		outcome    string // what the apply says
		next       plan.Verb
	}{
		"prevent": {protection: ownership.Prevent, outcome: "exists already and was written by theirs"},
		"adopt":   {protection: ownership.IfUnmanaged, outcome: "the next attempt adopts it", next: plan.Adopt},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workspace.Everything...)
			late, p := w.whileShared("late", func(late *world) plan.Plan { return late.planWith(oneMap, c.protection) })
			w.Patch(types.ApplyPatchType, "one", theirs, "theirs")
			result, err := apply.Apply(t.Context(), late.Client, p, apply.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if errs := result.Errors(); result.Count(apply.Conflict) != 1 || !strings.Contains(errs[0].Error(), c.outcome) {
				t.Errorf("got %v, want a conflict: %s", result.Outcomes, c.outcome)
			}
			if got := w.data("one"); len(got) != 1 || got["theirs"] != "kept" {
				t.Errorf("the object of another client is %v", got)
			}
			late.Inventory = result.Inventory
			next := late.planWith(oneMap, c.protection)
			if c.next == "" && (len(next.Violations) != 1 || next.Violations[0].Rule != violation.Collision) {
				t.Errorf("the next plan: %v, want a collision", next.Violations)
			}
			if c.next != "" && next.Count(c.next) != 1 {
				t.Errorf("the next plan: %s, want %s", next.Summary(), c.next)
			}
		})
	}
}

// An apply is continued if its answer was lost: the object is the owner's. Nothing is conditional in a namespace that is new.
func TestCreatedByAnEarlierAttempt(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	late, p := w.whileShared("late", func(late *world) plan.Plan { return late.Plan(late.Objects(oneMap)) })
	for range 2 {
		result, err := apply.Apply(t.Context(), late.Client, p, apply.Options{})
		if err != nil || !result.Complete() {
			t.Fatalf("got %v, %v", result.Outcomes, err)
		}
	}
	in := plan.Input{
		Owner:   late.Owner,
		Desired: []plan.Object{{ID: inventory.ID{Kind: "ConfigMap", Namespace: "new", Name: "one"}}},
		Observed: plan.Observed{
			Free:       map[inventory.ID]bool{{Kind: "ConfigMap", Namespace: "new", Name: "one"}: true},
			Namespaces: map[string]plan.Presence{"new": plan.Absent},
		},
		CreateNamespace: "new",
	}
	if got := onlyCreates(plan.Make(in)); len(got) > 0 {
		t.Errorf("in a new namespace: created on condition: %v", got)
	}
}

// roundTrip is a connection as a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// A server that refuses the condition gets an apply without it, after a read.
func TestConditionRefused(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	for _, code := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			var refused atomic.Int32
			config := w.ControlPlane.RESTConfig()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(request *http.Request) (*http.Response, error) {
					if request.Method != http.MethodPatch {
						return next.RoundTrip(request)
					}
					body, err := io.ReadAll(request.Body)
					if err != nil {
						return nil, err
					}
					if !strings.Contains(string(body), "resourceVersion") {
						request.Body = io.NopCloser(strings.NewReader(string(body)))
						return next.RoundTrip(request)
					}
					refused.Add(1)
					recorder := httptest.NewRecorder()
					recorder.Header().Set("Content-Type", "application/json")
					recorder.WriteHeader(code)
					reason := map[int]metav1.StatusReason{http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid}[code]
					_, _ = fmt.Fprintf(recorder, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
					return recorder.Result(), nil
				})
			})
			name := fmt.Sprintf("of-%d", code)
			asks := w.beside("x")
			asks.Client = w.clientOver(config).For("x")
			manifest := strings.ReplaceAll(oneMap, "name: one", "name: "+name)
			asks, p := asks.whileShared(name, func(asks *world) plan.Plan { return asks.Plan(asks.Objects(manifest)) })
			result, err := apply.Apply(t.Context(), asks.Client, p, apply.Options{})
			if err != nil || result.Count(apply.Created) != 1 || refused.Load() != 1 || w.data(name)["colour"] != "blue" {
				t.Errorf("got %v, %d applies were refused", result.Outcomes, refused.Load())
			}
		})
	}
}

// An object that another client deletes and creates again and again is never applied without the condition, and is created once it
// is gone.
func TestCreatedAndDeletedMeanwhile(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	for name, times := range map[string]int{"once": 1, "always": 100} {
		t.Run(name, func(t *testing.T) {
			theirs := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"theirs":"kept"}}`, name)
			flips := 0
			toggle := func(request *http.Request) error {
				switch {
				case !strings.HasSuffix(request.URL.Path, "/configmaps/"+name) || flips >= times:
				case request.Method == http.MethodPatch:
					w.Patch(types.ApplyPatchType, name, theirs, "theirs")
				case request.Method == http.MethodGet:
					flips++
					return w.Admin.CoreV1().ConfigMaps(w.Namespace).Delete(w.T.Context(), name, metav1.DeleteOptions{})
				}
				return nil
			}
			asks := w.beside("x")
			asks.Client = w.clientOver(w.ControlPlane.RESTConfig()).For("x")
			manifest := strings.ReplaceAll(oneMap, "name: one", "name: "+name)
			_, p := asks.whileShared(name, func(asks *world) plan.Plan { return asks.Plan(asks.Objects(manifest)) })
			config := w.ControlPlane.RESTConfig()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(request *http.Request) (*http.Response, error) {
					if err := toggle(request); err != nil {
						return nil, err
					}
					return next.RoundTrip(request)
				})
			})
			result, err := apply.Apply(t.Context(), w.clientOver(config).For(name), p, apply.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if times == 1 && (result.Count(apply.Created) != 1 || w.data(name)["colour"] != "blue" || w.data(name)["theirs"] != "") {
				t.Errorf("it was gone after one deletion, and the outcome is %v: %v", result.Outcomes, w.data(name))
			}
			if times > 1 && (result.Count(apply.Created) != 0 || len(result.Errors()) != 1 || !strings.Contains(result.Errors()[0].Error(), "create and delete it again") || flips != write.Attempts) {
				t.Errorf("it existed at each of %d attempts, and the outcome is %v", flips, result.Outcomes)
			}
		})
	}
}

// The API server refuses to apply an object with the condition that it does not exist if it does, for every kind, and creates one
// that does not.
func TestApplyCreate(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	w.MustApply(w.widgets())
	resources := []schema.GroupVersionResource{
		configMaps,
		{Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "serviceaccounts"},
		{Version: "v1", Resource: "persistentvolumeclaims"}, {Version: "v1", Resource: "namespaces"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "batch", Version: "v1", Resource: "jobs"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		w.widget(),
	}
	for _, resource := range resources {
		t.Run(resource.Resource, func(t *testing.T) { w.createsOnce(t, resource) })
	}
}

func (w *world) createsOnce(t *testing.T, resource schema.GroupVersionResource) {
	t.Helper()
	object := w.example(resource)
	ref := tenant.Ref{Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
	t.Cleanup(func() { _, _ = w.Client.Delete(w.T.Context(), ref, "", "") })
	options := tenant.ApplyOptions{Manager: "one", Create: true}
	answer, err := w.Client.Apply(t.Context(), ref, object, options)
	if err != nil || !answer.Created || answer.Meta.ResourceVersion == "" || object.GetResourceVersion() != "" {
		t.Fatalf("creating: %+v, %v", answer, err)
	}
	for _, manager := range []string{"one", "two"} {
		for _, force := range []bool{false, true} {
			options.Manager, options.Force = manager, force
			if _, err := w.Client.Apply(t.Context(), ref, object, options); !apierrors.IsConflict(err) {
				t.Errorf("applying as %s, by force %t, what exists: %v, want a conflict", manager, force, err)
			}
		}
	}
	found, err := w.Client.Metadata(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range found.ManagedFields {
		if entry.Manager == "two" || strings.Contains(string(entry.FieldsV1.GetRawBytes()), "resourceVersion") {
			t.Errorf("managed fields: %s %s", entry.Manager, entry.FieldsV1.GetRawBytes())
		}
	}
}

// example is an object of a resource.
func (w *world) example(resource schema.GroupVersionResource) *unstructured.Unstructured {
	w.T.Helper()
	const pod = `{"metadata":{"labels":{"app":"a"}},"spec":{"restartPolicy":"RESTART","containers":[{"name":"a","image":"example.org/a"}]}}`
	bodies := map[string]string{
		"configmaps": `{"kind":"ConfigMap","data":{"a":"b"}}`, "secrets": `{"kind":"Secret","data":{"a":"YQ=="}}`,
		"services":               `{"kind":"Service","spec":{"ports":[{"port":80}]}}`,
		"serviceaccounts":        `{"kind":"ServiceAccount"}`,
		"persistentvolumeclaims": `{"kind":"PersistentVolumeClaim","spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"none","resources":{"requests":{"storage":"1Mi"}}}}`,
		"namespaces":             `{"kind":"Namespace"}`,
		"deployments":            `{"kind":"Deployment","spec":{"replicas":0,"selector":{"matchLabels":{"app":"a"}},"template":` + strings.Replace(pod, "RESTART", "Always", 1) + `}}`,
		"jobs":                   `{"kind":"Job","spec":{"suspend":true,"template":` + strings.Replace(pod, "RESTART", "Never", 1) + `}}`,
		"roles":                  `{"kind":"Role","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
		"clusterroles":           `{"kind":"ClusterRole","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
		"customresourcedefinitions": `{"kind":"CustomResourceDefinition","spec":{"group":"NS.example.org","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},` +
			`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
		"widgets": `{"kind":"Widget"}`,
	}
	object := w.Objects(bodies[resource.Resource])[0]
	object.SetAPIVersion(resource.GroupVersion().String())
	object.SetName(w.Namespace + "-created")
	switch resource.Resource {
	case "customresourcedefinitions":
		object.SetName("things." + w.Namespace + ".example.org")
	case "namespaces", "clusterroles":
	default:
		object.SetNamespace(w.Namespace)
	}
	return object
}
