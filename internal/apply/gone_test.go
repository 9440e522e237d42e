// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// restarting is an API server that has just started: its discovery lacks a group. Where
// resources is true it does not serve the group's resources either.
type restarting struct {
	next      http.RoundTripper
	group     string
	resources bool
	over      atomic.Bool
}

func (r *restarting) RoundTrip(request *http.Request) (*http.Response, error) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	ofGroup := len(path) > 1 && path[1] == r.group
	switch {
	case r.over.Load():
	case ofGroup && (r.resources || len(path) < 4):
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`
		return &http.Response{
			StatusCode: http.StatusNotFound, Status: "404 Not Found", Request: request,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	case len(path) == 1 && path[0] == "apis":
		return r.withoutGroup(request)
	}
	return r.next.RoundTrip(request)
}

// withoutGroup removes the group from the document that lists all.
func (r *restarting) withoutGroup(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	var list map[string]any
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	items, _ := list["items"].([]any)
	list["items"] = slices.DeleteFunc(items, func(item any) bool {
		name, _, _ := unstructured.NestedString(item.(map[string]any), "metadata", "name") //nolint:forcetypeassert // of the API server
		return name == r.group
	})
	data, err := json.Marshal(list)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return response, err
}

// restart gives the world a client of an API server that has just started.
func (w *world) restart(resources bool) *restarting {
	w.T.Helper()
	server := &restarting{group: w.widget().Group, resources: resources}
	config := w.ControlPlane.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { server.next = next; return server })
	w.Client = w.clientOver(config)
	return server
}

// aWidget applies a bundle with a custom resource, with a CRD of another owner.
func (w *world) aWidget() inventory.ID {
	w.T.Helper()
	w.GrantCluster("installer", definers)
	w.MustApply(w.widgets())
	group := w.widget().Group
	w.Inventory = w.Inventory.Without(inventory.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets." + group})
	return inventory.ID{Group: group, Kind: "Widget", Namespace: w.Namespace, Name: "first"}
}

func (w *world) hasWidget() bool {
	w.T.Helper()
	_, err := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace).Get(w.T.Context(), "first", metav1.GetOptions{})
	return err == nil
}

// F39: while an API server that has just started lacks the groups of CRDs, no custom resource is
// forgotten, neither by a removal nor by a prune. It is deleted when the group is served again.
func TestF39DiscoveryWithoutGroups(t *testing.T) {
	for name, tc := range map[string]struct{ prune, resources bool }{
		"removal":                      {false, false},
		"removal, no resources either": {false, true},
		"prune":                        {true, false},
		"prune, no resources either":   {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workspace.Everything...)
			widget := w.aWidget()
			server := w.restart(tc.resources)
			end := func() []string {
				if !tc.prune {
					return remainingWords(w.remove())
				}
				p := w.Plan(w.Objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: another}}"))
				pruned, err := removal.Prune(t.Context(), w.Client, w.Owner, p.Prune, w.RemovalOptions())
				if err != nil {
					t.Fatal(err)
				}
				w.Inventory = p.Inventory.Without(pruned.Gone...)
				return remainingWords(removal.Removed{Pruned: pruned})
			}
			for range 3 {
				if left := strings.Join(end(), "; "); !strings.Contains(left, "is not served at the moment") || !w.Inventory.Has(widget) {
					t.Fatalf("listed: %v, waits: %s", w.Inventory.Has(widget), left)
				}
			}
			if _, err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
				t.Errorf("what is used by the custom resource went before it: %v", err)
			}
			server.over.Store(true)
			workspace.Eventually(t, "everything goes", func() error {
				if left := end(); len(left) > 0 || w.hasWidget() {
					return fmtError("left: " + strings.Join(left, "; "))
				}
				return nil
			})
			if w.Inventory.Has(widget) {
				t.Error("it is listed still")
			}
		})
	}
}

// F39: a kind that is really gone does not block a removal.
func TestF39KindThatIsGone(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	widget := w.aWidget()
	if err := w.Dynamic.Resource(definitions).Delete(t.Context(), "widgets."+w.widget().Group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	workspace.Eventually(t, "the kind is gone", func() error {
		_, err := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace).List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is served: %w", err)
		}
		return nil
	})
	w.restart(false).over.Store(true) // another process, that never saw the kind
	if first := w.remove(); first.Done() || !w.Inventory.Has(widget) {
		t.Error("one look was enough")
	}
	w.removeAll()
}

// F39: a namespace does not count as empty by an answer of discovery that may lack groups.
func TestF39NamespaceWithUnknownKinds(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.aWidget()
	server := w.restart(false)
	if _, err := w.Client.Kinds().Namespaced(t.Context()); !discovery.IsUnsettled(err) {
		t.Errorf("the first answer is relied on: %v", err)
	}
	server.over.Store(true)
	listed := func() (found bool, err error) {
		kinds, err := w.Client.Kinds().Namespaced(t.Context())
		for _, kind := range kinds {
			found = found || kind.GroupKind().Group == w.widget().Group
		}
		return found, err
	}
	workspace.Eventually(t, "the kinds are known", func() error {
		if found, err := listed(); err != nil || !found {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	server.over.Store(false) // it starts again
	w.Client.Kinds().Forget()
	for range 3 {
		if found, err := listed(); err != nil || !found {
			t.Fatalf("a kind that was served a moment ago is not looked through: %v", err)
		}
	}
}
