// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/controller/deployment/abandon"
	"github.com/satchel-dev/satchel/internal/controller/deployment/clusters"
	"github.com/satchel-dev/satchel/internal/controller/deployment/process"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	ctrl.SetLogger(logr.Discard())     // what the controller says is in events and statuses
	_ = flag.Set("test.parallel", "8") // the tests mostly wait
	code := controlplane.RunMain(m)
	_ = os.RemoveAll(shared.dir)
	os.Exit(code)
}

// patience bounds waiting for the controller; it is many times what it needs.
const patience = 3 * time.Minute

// driven is a label of deployments that the running controller leaves to a driver.
const driven = "example.org/driven"

// rig is a control plane with Satchel's CRDs and RBAC, the deployment controller
// running with exactly its own permissions, and an artifact server.
type rig struct {
	cp    *controlplane.ControlPlane
	admin client.Client
	store *storage.Store
	// artifacts is the URL of the artifact server.
	artifacts string
	// flux is the artifact server of Flux's controllers.
	flux *fluxServer
	// down holds an outage for each namespace without artifacts from the server.
	down sync.Map
}

var shared struct {
	once    sync.Once
	rig     rig
	running *deployment.Reconciler
	dir     string
	err     error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cp := controlplane.Shared(t)
	shared.once.Do(func() { shared.err = startRig(cp) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared.rig
}

func startRig(cp *controlplane.ControlPlane) error {
	ctx := context.Background() // the controller runs as long as the test binary
	if err := installation.Install(ctx, cp.RESTConfig()); err != nil {
		return err
	}
	if err := installation.InstallFluxKinds(ctx, cp.RESTConfig()); err != nil {
		return err
	}
	unlimited := rest.CopyConfig(cp.RESTConfig())
	unlimited.QPS, unlimited.Burst = -1, -1 // many tests poll at once
	admin, err := installation.Client(unlimited)
	if err != nil {
		return err
	}
	if err := exceptUnguarded(ctx, admin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "satchel-deployment-*")
	if err != nil {
		return err
	}
	shared.dir = dir
	var handler http.Handler
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if outage := shared.rig.outage(r.URL.Path); outage != nil {
			outage.asked.Add(1)
			http.Error(w, "down for a test", outage.status)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	store, err := storage.Open(storage.Options{Dir: filepath.Join(dir, "store"), BaseURL: served.URL})
	if err != nil {
		return err
	}
	handler = server.NewHandler(store, server.Options{})
	shared.rig.flux = newFluxServer()
	shared.rig.cp, shared.rig.admin, shared.rig.store, shared.rig.artifacts = cp, admin, store, served.URL
	return runController(ctx, cp, served.URL, shared.rig.flux.URL, filepath.Join(dir, "cache"))
}

func runController(ctx context.Context, cp *controlplane.ControlPlane, artifacts, flux, cache string) error {
	config, err := installation.AccountConfig(ctx, cp.RESTConfig(), installation.Namespace, deployment.FieldManager)
	if err != nil {
		return err
	}
	mgr, err := manager.New(config, deployment.FieldManager, manager.Options{MetricsAddr: "0", HealthAddr: "0", Namespace: installation.Namespace})
	if err != nil {
		return err
	}
	options := process.Options{Namespace: installation.Namespace, ArtifactServers: []string{artifacts}, FluxServers: []string{flux}, CachePath: cache, CacheMiB: 64, WatchLimit: 2000, Remote: clusters.Default(), AbandonAfter: abandon.Default, Limits: fetch.DefaultLimits(),
		Egress: guard.AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, OwnCluster: true}
	options.Workers = worker.DefaultOptions()
	if !releaseSuite() {
		options.Workers.CPU, options.Workers.NamespaceCPU = 3*time.Second, 30*time.Second // so that limits are reached soon
	}
	part, err := shard.Parse("!" + driven)
	if err != nil {
		return err
	}
	if shared.running, err = options.Setup(ctx, mgr, 8, part); err != nil {
		return err
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the deployment controller ended:", err)
		}
	}()
	return nil
}

// releaseSuite tells that cases run at their full size.
func releaseSuite() bool { return os.Getenv("SATCHEL_FULL") != "" }

// betweenKills is how many writes lie between two points at which a controller is killed: each write counts in the release suite,
// and every third one else.
func betweenKills() int {
	if releaseSuite() {
		return 1
	}
	return 3
}

// namespace is a new namespace with a ServiceAccount that has all permissions.
func (r *rig) namespace(t *testing.T) string {
	t.Helper()
	namespace := controlplane.NewNamespace(t, r.cp)
	if err := installation.Admin(t.Context(), r.admin, namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	return namespace
}

// publish makes a tree the artifact of the BundleSource of the given name, as
// the source controller would.
func (r *rig) publish(t *testing.T, namespace, name, reference string, files fs.FS) meta.Artifact {
	t.Helper()
	return r.publishFrom(t, namespace, name, reference, "", files)
}

// publishFrom is publish of a tree with an origin revision.
func (r *rig) publishFrom(t *testing.T, namespace, name, reference, origin string, files fs.FS) meta.Artifact {
	t.Helper()
	published, err := r.store.Put(t.Context(), artifact.Owner{Kind: "bundlesource", Namespace: namespace, Name: name}, reference, files)
	if err != nil {
		t.Fatal(err)
	}
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	source.Spec.Sources = []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: "content"}}}
	err = r.admin.Get(t.Context(), client.ObjectKeyFromObject(source), source)
	if apierrors.IsNotFound(err) {
		err = r.admin.Create(t.Context(), source)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.setSource(t, namespace, name, func(source *v1alpha1.BundleSource) {
		source.Status.Artifact, source.Status.OriginRevision = &published, origin
		source.Status.SourcesDigest = effective.SourcesDigest(&source.Spec)
		if source.Spec.Sources[0].Git != nil { // the reference is the commit
			resolved := v1alpha1.ResolvedSource{}
			if len(source.Status.Resolved) > 0 { // how it was reached stays
				resolved = source.Status.Resolved[0]
			}
			resolved.Reference, resolved.Digest = reference, reference
			source.Status.Resolved = []v1alpha1.ResolvedSource{resolved}
		}
		source.Status.ObservedGeneration = source.Generation
		conditions.MarkTrue(source, meta.ReadyCondition, v1alpha1.ReasonSucceeded, "published")
	})
	return published
}

// setSource changes the status of a BundleSource.
func (r *rig) setSource(t *testing.T, namespace, name string, change func(*v1alpha1.BundleSource)) {
	t.Helper()
	var source v1alpha1.BundleSource
	if err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &source); err != nil {
		t.Fatal(err)
	}
	before := source.DeepCopy()
	change(&source)
	if err := r.admin.Status().Patch(t.Context(), &source, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// deploy creates a deployment of the source of the same name; change may adjust it.
func (r *rig) deploy(t *testing.T, namespace, name string, change func(*v1alpha1.BundleDeployment)) client.ObjectKey {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: name}
	if change != nil {
		change(d)
	}
	if err := r.admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(d)
	t.Cleanup(func() { r.remove(t, key) })
	return key
}

// remove deletes a deployment, and waits until it is gone.
func (r *rig) remove(t *testing.T, key client.ObjectKey) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := client.IgnoreNotFound(r.admin.Delete(ctx, d)); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, ctx, "the deployment is gone", func(ctx context.Context) (bool, string) {
		var d v1alpha1.BundleDeployment
		err := r.admin.Get(ctx, key, &d)
		return apierrors.IsNotFound(err), describe(&d)
	})
}

// edit changes the spec of a deployment.
func (r *rig) edit(t *testing.T, key client.ObjectKey, change func(*v1alpha1.BundleDeployment)) {
	t.Helper()
	var d v1alpha1.BundleDeployment
	if err := r.admin.Get(t.Context(), key, &d); err != nil {
		t.Fatal(err)
	}
	before := d.DeepCopy()
	change(&d)
	if err := r.admin.Patch(t.Context(), &d, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// until waits for a state of a deployment, and returns it.
func (r *rig) until(t *testing.T, key client.ObjectKey, what string, holds func(*v1alpha1.BundleDeployment) bool) *v1alpha1.BundleDeployment {
	t.Helper()
	var d v1alpha1.BundleDeployment
	r.eventually(t, t.Context(), what, func(ctx context.Context) (bool, string) {
		d = v1alpha1.BundleDeployment{}
		if err := r.admin.Get(ctx, key, &d); err != nil {
			return false, err.Error()
		}
		return d.Status.ObservedGeneration == d.Generation && holds(&d), describe(&d)
	})
	return &d
}

// ready waits until a revision is applied and healthy.
func (r *rig) ready(t *testing.T, key client.ObjectKey, revision string) *v1alpha1.BundleDeployment {
	t.Helper()
	return r.until(t, key, "Ready at "+revision, func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, meta.ReadyCondition) && d.Status.Healthy.Revision == revision
	})
}

// unready waits until Ready is False for a reason.
func (r *rig) unready(t *testing.T, key client.ObjectKey, reason string) *v1alpha1.BundleDeployment {
	t.Helper()
	d := r.until(t, key, "not Ready: "+reason, func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsFalse(d, meta.ReadyCondition) && conditions.GetReason(d, meta.ReadyCondition) == reason
	})
	t.Logf("%s says: %s", key.Name, conditions.GetMessage(d, meta.ReadyCondition))
	return d
}

func (r *rig) eventually(t *testing.T, ctx context.Context, what string, check func(context.Context) (bool, string)) {
	t.Helper()
	var seen string
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		done, now := check(ctx)
		if ctx.Err() == nil {
			seen = now
		}
		return done, nil
	})
	if err != nil {
		t.Fatalf("waited in vain: %s; last seen:\n%s", what, seen)
	}
}

func describe(d *v1alpha1.BundleDeployment) string {
	var text strings.Builder
	fmt.Fprintf(&text, "generation %d, observed %d, attempted %q, applied %q, healthy %q\n", d.Generation, d.Status.ObservedGeneration,
		d.Status.Attempted.Revision, d.Status.Applied.Revision, d.Status.Healthy.Revision)
	for _, c := range d.Status.Conditions {
		fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}

// value reads the one value of a ConfigMap; "" when it does not exist.
func (r *rig) value(t *testing.T, ctx context.Context, namespace, name string) string {
	t.Helper()
	var found corev1.ConfigMap
	err := r.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return found.Data["value"]
}
