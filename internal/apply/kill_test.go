// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// dying is a connection that ends at the n-th write, before or after the API
// server has carried it out, and stays dead.
type dying struct {
	next   http.RoundTripper
	mu     sync.Mutex
	left   int
	commit bool
	dead   bool
}

var errDead = errors.New("the controller was killed")

func (d *dying) RoundTrip(request *http.Request) (*http.Response, error) {
	d.mu.Lock()
	write := request.Method == http.MethodPatch || request.Method == http.MethodDelete
	if write && !d.dead {
		d.left--
	}
	last := write && !d.dead && d.left == 0
	dead := d.dead
	d.dead = d.dead || last
	d.mu.Unlock()
	if dead || last && !d.commit {
		return nil, errDead
	}
	response, err := d.next.RoundTrip(request)
	if last && err == nil {
		_ = response.Body.Close()
		return nil, errDead
	}
	return response, err
}

// dyingAt gives the world a client that dies at the n-th write.
func (w *world) dyingAt(n int, commit bool) *dying {
	w.T.Helper()
	death := &dying{left: n, commit: commit}
	config := w.ControlPlane.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { death.next = next; return death })
	w.Client = w.clientOver(config)
	return death
}

func (w *world) clientOver(config *rest.Config) *tenant.Client {
	w.T.Helper()
	pool, err := tenant.NewPool(config, tenant.Options{})
	if err != nil {
		w.T.Fatal(err)
	}
	client, err := pool.Client(tenant.Identity{Namespace: w.Namespace, ServiceAccount: "installer"})
	if err != nil {
		w.T.Fatal(err)
	}
	return client.For(w.Owner.Name)
}

// reconcile does what the controller does, storing the inventory where it does,
// and stops where the client dies.
func (w *world) reconcile(manifests string) {
	in, err := observe.Cluster(w.T.Context(), w.Client, observe.Request{
		Owner: w.Owner, Desired: w.Objects(manifests), Previous: w.Inventory, InstallNamespace: w.Namespace,
	})
	if err != nil {
		return
	}
	p := plan.Make(in)
	if len(p.Violations) > 0 {
		w.T.Fatalf("refused: %v", p.Violations)
	}
	w.Inventory = p.Inventory
	result, err := apply.Apply(w.T.Context(), w.Client, p, apply.Options{Parallelism: 2})
	if err != nil || !result.Complete() {
		return // dead: what it saw is lost
	}
	pruned, err := removal.Prune(w.T.Context(), w.Client, w.Owner, p.Prune, removal.Options{Parallelism: 2})
	if err != nil || !pruned.Complete() {
		return
	}
	w.Inventory = result.Inventory.Without(pruned.Gone...)
}

const (
	killOld = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: stays}, data: {a: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: changes}, data: {a: "1"}}
---
{apiVersion: v1, kind: Service, metadata: {name: old-name}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: goes}, stringData: {a: b}}
`
	killNew = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: stays}, data: {a: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: changes}, data: {a: "2"}}
---
{apiVersion: v1, kind: Service, metadata: {name: new-name}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: comes}}
`
)

// owned lists the objects with the deployment's labels, as an administrator.
func (w *world) owned() map[string]string {
	w.T.Helper()
	found := map[string]string{}
	options := metav1.ListOptions{LabelSelector: inventory.LabelDeployment + "=app"}
	for _, resource := range []string{"configmaps", "services", "secrets", "serviceaccounts"} {
		list, err := w.Dynamic.Resource(configMaps.GroupVersion().WithResource(resource)).Namespace(w.Namespace).List(w.T.Context(), options)
		if err != nil {
			w.T.Fatal(err)
		}
		for _, item := range list.Items {
			found[resource+"/"+item.GetName()] = fmt.Sprint(item.Object["data"])
		}
	}
	return found
}

// A process that dies before or after any write of an install, an upgrade or a
// removal leaves nothing that keeps the next one from the same result.
func TestF3KilledAtAnyWrite(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	healthy := w.Client
	w.reconcile(killNew)
	want := fmt.Sprint(w.owned())
	w.removeAll()
	for _, phase := range []string{"install", "upgrade", "removal"} {
		for n := 1; n <= 5; n++ {
			for _, commit := range []bool{false, true} {
				name := fmt.Sprintf("%s, write %d, carried out %t", phase, n, commit)
				w.Client = healthy
				if phase != "install" {
					w.reconcile(killOld)
				}
				death := w.dyingAt(n, commit)
				if phase == "removal" {
					removed, err := removal.Remove(t.Context(), w.Client, w.Owner, w.Inventory, removal.Options{Parallelism: 2})
					if err == nil && death.dead && removed.Done() {
						t.Errorf("%s: done, but killed", name)
					}
				} else {
					w.reconcile(killNew)
				}
				if !death.dead && n <= 4 {
					t.Fatalf("%s: no process was killed", name)
				}
				w.Client = healthy
				if phase != "removal" {
					w.reconcile(killNew)
					if got := fmt.Sprint(w.owned()); got != want {
						t.Errorf("%s: got %s, want %s", name, got, want)
					}
					if p := w.Plan(w.Objects(killNew)); !p.Quiet() || p.Inventory.Len() != 4 {
						t.Errorf("%s: afterwards %s, %d in the inventory", name, p.Summary(), p.Inventory.Len())
					}
				}
				w.removeAll()
				if left := w.owned(); len(left) > 0 {
					t.Fatalf("%s: orphans %v", name, left)
				}
			}
		}
	}
}

// While the API server answers with errors, a removal keeps everything in the
// inventory and reports the errors.
func TestF22RemovalWithAPIErrors(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	healthy := w.Client
	w.MustApply(killOld)
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusForbidden} {
		config := w.ControlPlane.RESTConfig()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return answering{status: status, next: next} })
		w.Client = w.clientOver(config)
		removed, err := removal.Remove(t.Context(), w.Client, w.Owner, w.Inventory, removal.Options{})
		if removed.Done() || removed.Inventory.Len() != 4 || err == nil && len(removed.Denied) == 0 {
			t.Errorf("%d: done %t with %d left, error %v", status, removed.Done(), removed.Inventory.Len(), err)
		}
	}
	w.Client = healthy
	w.removeAll()
}

// answering refuses everything but discovery.
type answering struct {
	status int
	next   http.RoundTripper
}

func (a answering) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Count(request.URL.Path, "/") < 3 {
		return a.next.RoundTrip(request)
	}
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Body: http.NoBody, Header: http.Header{}, Request: request}, nil
}
