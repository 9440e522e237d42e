// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
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
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/internal/controller/source/process"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/indexing"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
	"github.com/satchel-dev/satchel/tests/upstream"
)

func TestMain(m *testing.M) {
	child.Main(indexing.Handlers())
	ctrl.SetLogger(logr.Discard()) // what the controller says is in events and statuses
	code := controlplane.RunMain(m)
	if dir := shared.dir; dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// patience bounds waiting for the controller; it is many times what it needs.
const patience = 60 * time.Second

// rig is a control plane with Satchel's CRDs and RBAC, and the source controller
// running with exactly its own permissions.
type rig struct {
	cp       *controlplane.ControlPlane
	admin    client.Client
	cached   client.Reader // what the controller sees
	storage  string        // folder
	address  string        // of the artifact server
	uploads  string        // address of the upload server
	registry *upstream.Registry
}

var shared struct {
	once sync.Once
	rig  rig
	dir  string // removed in the end
	err  error
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
	admin, err := installation.Client(cp.RESTConfig())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "satchel-source-*")
	if err != nil {
		return err
	}
	shared.dir = dir
	config, err := installation.AccountConfig(ctx, cp.RESTConfig(), installation.Namespace, source.FieldManager)
	if err != nil {
		return err
	}
	mgr, err := manager.New(config, source.FieldManager, manager.Options{MetricsAddr: "0", HealthAddr: "0", Namespace: installation.Namespace, Trim: sourceusers.Trim})
	if err != nil {
		return err
	}
	addr, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	uploads, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	shared.rig = rig{uploads: uploads, cp: cp, admin: admin, cached: mgr.GetCache(), storage: filepath.Join(dir, "artifacts"), address: addr, registry: upstream.NewRegistry(ctx)}
	o := options(dir, addr)
	o.UploadAddr, o.Catalogs.SharedNamespace = uploads, sharedCatalogs
	if err := o.Setup(mgr, 8, shard.Shard{}); err != nil {
		return err
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the source controller ended:", err)
		}
	}()
	return nil
}

// quota of a namespace: more than any test needs that does not test it.
const quota = 4 << 20

func options(dir, addr string) process.Options {
	return process.Options{
		Storage:      process.StorageOptions{Path: dir, Quota: quota, Retention: source.Retention{Records: 1, TTL: time.Millisecond}},
		Server:       process.ServerOptions{Addr: addr, AdvAddr: addr},
		PerNamespace: 5,
		TrustEvery:   500 * time.Millisecond,
		Limits:       upstreams().Limits,
		Policy:       upstreams().Policy,
		Catalogs:     process.DefaultCatalogOptions(),
	}
}

// upstreams permits the servers of tests.
func upstreams() sourcefetch.Options {
	return sourcefetch.Options{
		Limits: fetch.DefaultLimits(),
		Policy: guard.AddressPolicy{
			Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			InsecureHosts: []string{"127.0.0.1"},
		},
	}
}

// create makes a BundleSource of the given sources; change may adjust it.
func (r *rig) create(t *testing.T, namespace, name string, sources []v1alpha1.Source, change func(*v1alpha1.BundleSource)) client.ObjectKey {
	t.Helper()
	object := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	object.Spec.Sources = sources
	if change != nil {
		change(object)
	}
	if err := r.admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return client.ObjectKeyFromObject(object)
}

func every(interval time.Duration) func(*v1alpha1.BundleSource) {
	return func(s *v1alpha1.BundleSource) { s.Spec.Interval = v1alpha1.Duration{Duration: interval} }
}

// edit changes the spec or metadata of a source.
func (r *rig) edit(t *testing.T, key client.ObjectKey, change func(*v1alpha1.BundleSource)) {
	t.Helper()
	var object v1alpha1.BundleSource
	if err := r.admin.Get(t.Context(), key, &object); err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopy()
	change(&object)
	if err := r.admin.Patch(t.Context(), &object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// refresh requests a reconcile and waits until it was handled.
func (r *rig) refresh(t *testing.T, key client.ObjectKey) *v1alpha1.BundleSource {
	t.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	r.edit(t, key, func(s *v1alpha1.BundleSource) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, meta.ReconcileRequestAnnotation, at)
	})
	return r.until(t, key, "the request is handled", func(s *v1alpha1.BundleSource) bool { return s.Status.LastHandledReconcileAt == at })
}

// until waits for a state of a source, and returns it.
func (r *rig) until(t *testing.T, key client.ObjectKey, what string, holds func(*v1alpha1.BundleSource) bool) *v1alpha1.BundleSource {
	t.Helper()
	var object v1alpha1.BundleSource
	err := wait.PollUntilContextTimeout(t.Context(), 30*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var now v1alpha1.BundleSource
		if err := r.admin.Get(ctx, key, &now); err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		object = now
		return now.Status.ObservedGeneration == now.Generation && holds(&now), nil
	})
	if err != nil {
		t.Fatalf("waited in vain: %s; last seen:\n%s", what, describe(&object))
	}
	return &object
}

func (r *rig) ready(t *testing.T, key client.ObjectKey) *v1alpha1.BundleSource {
	t.Helper()
	return r.until(t, key, "Ready", func(s *v1alpha1.BundleSource) bool { return conditions.IsTrue(s, meta.ReadyCondition) })
}

// unready waits until Ready is False for a reason.
func (r *rig) unready(t *testing.T, key client.ObjectKey, reason string) *v1alpha1.BundleSource {
	t.Helper()
	return r.until(t, key, "not Ready: "+reason, func(s *v1alpha1.BundleSource) bool {
		return conditions.IsFalse(s, meta.ReadyCondition) && conditions.GetReason(s, meta.ReadyCondition) == reason
	})
}

func describe(s *v1alpha1.BundleSource) string {
	var text strings.Builder
	fmt.Fprintf(&text, "generation %d, observed %d, artifact %v\n", s.Generation, s.Status.ObservedGeneration, s.Status.Artifact)
	for _, c := range s.Status.Conditions {
		fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}

// download gets an artifact like a consumer and checks invariant I5: the content at the
// URL has the advertised digest.
func download(t *testing.T, a *meta.Artifact) []byte {
	t.Helper()
	code, body := get(t, a.URL)
	if code != http.StatusOK {
		t.Fatalf("%s answers %d", a.URL, code)
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(body)); got != a.Digest {
		t.Fatalf("%s has digest %s, advertised is %s", a.URL, got, a.Digest)
	}
	return body
}

func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// gone tells whether a source does not exist any more.
func (r *rig) gone(ctx context.Context, key client.ObjectKey) bool {
	return apierrors.IsNotFound(r.admin.Get(ctx, key, &v1alpha1.BundleSource{}))
}

// told waits for an event about a source that contains a string.
func (r *rig) told(t *testing.T, s *v1alpha1.BundleSource, text string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var events eventsv1.EventList
		if err := r.admin.List(ctx, &events, client.InNamespace(s.Namespace)); err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		for _, event := range events.Items {
			if event.Regarding.Name == s.Name && strings.Contains(event.Note, text) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Errorf("no event about %s says %q", s.Name, text)
	}
}
