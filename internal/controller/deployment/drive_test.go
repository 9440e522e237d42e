// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/controller/deployment/figures"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/repeat"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/installation"
)

// rarely leaves a deployment to a driver: the running controller, once it is
// content, does not come back to it during a test.
func rarely(d *v1alpha1.BundleDeployment) {
	d.Spec.Interval = v1alpha1.Duration{Duration: 8760 * time.Hour}
	d.Spec.RetryInterval = v1alpha1.Duration{Duration: time.Minute}
}

// driver is the controller after a restart, on a copy of its volume, with a clock
// of its own. It reconciles one deployment whenever a test says so.
type driver struct {
	*deployment.Reconciler
	r        *rig
	key      client.ObjectKey
	now      time.Time
	told     *told
	registry *prometheus.Registry
	cache    string
	// watches are those of the next process; none by default.
	watches drift.Options
	// cached is what the next process reads from its cache; what the API server has by default.
	cached func(client.Client) client.Client
	// workers convert for the next process; those of the running controller by default.
	workers jobs.Runner
	// room is what the next process lets an inventory take.
	room inventory.Limit
}

// told records events as strings.
type told struct {
	mu    sync.Mutex
	notes []string
}

// Eventf implements events.EventRecorder.
func (e *told) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

// drive starts a driver of a deployment; the clock starts at the current time. Its
// connections may be wrapped.
func (r *rig) drive(t *testing.T, key client.ObjectKey, wrap transport.WrapperFunc) *driver {
	t.Helper()
	shared.running.Unwatch(key) // it leads no longer
	d := &driver{r: r, key: key, now: time.Now(), cache: t.TempDir()}
	copySnapshot(t, string(d.deployment(t).UID), filepath.Join(d.cache, "applied"))
	return d.again(t, wrap)
}

// again is the next process at the same time, with the same files.
func (d *driver) again(t *testing.T, wrap transport.WrapperFunc) *driver {
	t.Helper()
	r := d.r
	d = &driver{r: r, key: d.key, now: d.now, told: &told{}, registry: prometheus.NewRegistry(), cache: d.cache, watches: d.watches, cached: d.cached, room: d.room, workers: d.workers}
	keys, err := keyring.Load(t.Context(), r.admin, r.admin, installation.Namespace, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config, err := installation.AccountConfig(t.Context(), r.cp.RESTConfig(), installation.Namespace, deployment.FieldManager)
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(wrap)
	repeat.Wrap(config) // as a manager does
	direct, err := installation.Client(config)
	if err != nil {
		t.Fatal(err)
	}
	own := installation.Unindexed(direct)
	tenants, err := tenant.NewPool(config, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	expiry, err := figures.NewExpiry(d.registry)
	if err != nil {
		t.Fatal(err)
	}
	cached := d.cached
	if cached == nil {
		cached = func(own client.Client) client.Client { return own }
	}
	if d.workers == nil {
		d.workers = shared.running.Workers
	}
	d.Reconciler = deployment.NewReconciler(deployment.Deps{
		Client: cached(own), APIReader: own, Events: d.told, Tenants: tenants, Expiry: expiry, Keys: keys,
		Artifacts: d.loader(t), Snapshots: d.snapshots(t), Watches: d.watches, InventoryLimit: d.room, Workers: d.workers, Now: func() time.Time { return d.now },
	})
	d.WaitForConversions() // a driver has no wake-ups
	t.Cleanup(d.CloseWatches)
	return d
}

// copySnapshot copies what the running controller keeps of a deployment.
func copySnapshot(t *testing.T, uid, folder string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(shared.dir, "cache", "applied", uid+".snapshot"))
	if os.IsNotExist(err) {
		return // the driver is the first one
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, uid+".snapshot"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (d *driver) loader(t *testing.T) *loader.Loader {
	t.Helper()
	loader, err := loader.New(loader.Options{
		Client: http.DefaultClient, ServerURLs: []string{d.r.artifacts}, CacheDir: filepath.Join(d.cache, "artifacts"), CacheBytes: 64 << 20, Limits: fetch.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return loader
}

func (d *driver) snapshots(t *testing.T) *lastapplied.Snapshots {
	t.Helper()
	snapshots, err := lastapplied.Open(filepath.Join(d.cache, "applied"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return snapshots
}

// reconcile runs the driver once, and again after a pending conversion has ended, as the queue of the running
// controller would.
func (d *driver) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	var result ctrl.Result
	d.r.eventually(t, t.Context(), "the bundle is converted", func(ctx context.Context) (bool, string) {
		var err error
		if result, err = d.Reconcile(ctx, ctrl.Request{NamespacedName: d.key}); err != nil {
			t.Fatal(err)
		}
		if !d.Converting() {
			return true, ""
		}
		return false, describe(d.deployment(t))
	})
	return result
}

// ready reconciles until the deployment is Ready.
func (d *driver) ready(t *testing.T) (*v1alpha1.BundleDeployment, ctrl.Result) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		result := d.reconcile(t)
		found := d.deployment(t)
		if isReady(found) {
			return found, result
		}
		if time.Now().After(deadline) {
			t.Fatalf("not Ready:\n%s", describe(found))
		}
		time.Sleep(100 * time.Millisecond) // Pods become ready
	}
}

func isReady(d *v1alpha1.BundleDeployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == meta.ReadyCondition {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

func (d *driver) deployment(t *testing.T) *v1alpha1.BundleDeployment {
	t.Helper()
	var found v1alpha1.BundleDeployment
	if err := d.r.admin.Get(t.Context(), d.key, &found); err != nil {
		t.Fatal(err)
	}
	return &found
}

// heard tells whether an event contained a string.
func (d *driver) heard(text string) bool {
	d.told.mu.Lock()
	defer d.told.mu.Unlock()
	return strings.Contains(strings.Join(d.told.notes, "\n"), text)
}

// ends reads the metric: when the certificate of each Secret ends.
func (d *driver) ends(t *testing.T) map[string]time.Time {
	t.Helper()
	families, err := d.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]time.Time{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "secret" {
					ends[label.GetValue()] = time.Unix(int64(m.GetGauge().GetValue()), 0)
				}
			}
		}
	}
	return ends
}

// contents reads the snapshot of the deployment, and what was begun since, unpacked.
func (d *driver) contents(t *testing.T) string {
	t.Helper()
	data, found, err := d.snapshots(t).Load(string(d.deployment(t).UID))
	if err != nil || !found {
		t.Fatalf("the snapshot: found %v (%v)", found, err)
	}
	begun, _, err := d.snapshots(t).LoadAddition(string(d.deployment(t).UID))
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + string(begun)
}
