// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/rollout"
	"github.com/satchel-dev/satchel/internal/controller/rollout/fleet"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	ctrl.SetLogger(logr.Discard()) // what the controller says is in events and statuses
	os.Exit(controlplane.RunMain(m))
}

// shared is a control plane with Satchel's kinds, and a client with exactly the permissions of the rollout controller.
var shared struct {
	once        sync.Once
	err         error
	admin       client.Client
	config      *rest.Config
	adminConfig *rest.Config
}

func start(t *testing.T) {
	t.Helper()
	cp := controlplane.Shared(t)
	shared.once.Do(func() { shared.err = prepare(cp.RESTConfig()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
}

func prepare(admin *rest.Config) (err error) {
	ctx := context.Background()
	admin = rest.CopyConfig(admin)
	admin.QPS, admin.Burst = -1, -1
	shared.adminConfig = admin
	if err := installation.Install(ctx, admin); err != nil {
		return err
	}
	if err := installation.InstallRollouts(ctx, admin); err != nil {
		return err
	}
	if shared.admin, err = installation.Client(admin); err != nil {
		return err
	}
	shared.config, err = installation.AccountConfig(ctx, admin, installation.Namespace, rollout.FieldManager)
	return err
}

// rig drives the controller for one rollout, by a clock of its own. A faker writes the statuses of sources and of
// BundleDeployments, as the other two controllers would.
type rig struct {
	t          *testing.T
	namespace  string
	now        time.Time
	set        time.Duration // by how much the clock was set forward
	reconciler *rollout.Reconciler
	// client is that of the controller; tests may break it.
	client client.Client
	events recorder
	shard  shard.Shard

	// bad are clusters on which a version fails.
	bad map[string]bool
	// slow are clusters that never become ready.
	slow map[string]bool
	// frozen are clusters of which nothing is reported any more.
	frozen map[string]bool
	// check is called after each step.
	check func()
}

// recorder collects the reasons of events.
type recorder struct {
	mu      sync.Mutex
	reasons []string
}

func (r *recorder) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons = append(r.reasons, reason)
}

const name = "app"

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	return prepareRig(t)
}

func prepareRig(t *testing.T) *rig {
	t.Helper()
	start(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-"}}
	if err := shared.admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	own, err := installation.Client(shared.config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, namespace: namespace.Name, now: time.Now().Truncate(time.Second), client: own,
		bad: map[string]bool{}, slow: map[string]bool{}, frozen: map[string]bool{}, check: func() {},
	}
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "view", r.namespace); err != nil {
		t.Fatal(err)
	}
	r.restart()
	return r
}

// restart is a new process.
func (r *rig) restart() {
	r.t.Helper()
	tenants, err := tenant.NewPool(shared.config, tenant.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.reconciler = rollout.NewReconciler(rollout.Deps{
		Client: r.client, APIReader: r.client, Events: &r.events, Clusters: fleet.Lister{Tenants: tenants, Most: 100},
		Shard: r.shard, Now: func() time.Time { return r.now }, Passed: func() time.Duration { return r.now.Sub(time.Unix(0, 0)) - r.set },
	})
}

func (r *rig) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: name}
}

func digestOf(version string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(version)))
}

// publish lets the source of the rollout have another version.
func (r *rig) publish(version string) {
	r.t.Helper()
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "bundle"}}
	source.Spec.Sources = []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "registry.example.org/app:stable"}}}
	if err := shared.admin.Create(r.t.Context(), source); apierrors.IsAlreadyExists(err) {
		err = shared.admin.Get(r.t.Context(), r.key("bundle"), source)
		if err != nil {
			r.t.Fatal(err)
		}
	} else if err != nil {
		r.t.Fatal(err)
	}
	r.publishAs(source, digestOf(version), "stable")
}

func (r *rig) publishAs(source *v1alpha1.BundleSource, digest, tag string) {
	r.t.Helper()
	before := source.DeepCopy()
	source.Status.Artifact = &meta.Artifact{
		Revision: tag + "@" + digest, Digest: "sha256:" + strings.Repeat("0", 64), URL: "http://example.org/a.tar.gz", Path: "a", LastUpdateTime: metav1.Now(),
	}
	source.Status.OriginRevision = tag + "@" + digest
	source.Status.Resolved = []v1alpha1.ResolvedSource{{Reference: tag, Digest: digest}}
	source.Status.SourcesDigest = effective.SourcesDigest(&source.Spec)
	source.Status.ObservedGeneration = source.Generation
	apimeta.SetStatusCondition(&source.Status.Conditions, metav1.Condition{Type: "Ready", Status: "True", Reason: "Succeeded", ObservedGeneration: source.Generation})
	if err := shared.admin.Status().Patch(r.t.Context(), source, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// cluster is an entry of spec.clusters.
func cluster(name, ring string) v1alpha1.RolloutClusters {
	return v1alpha1.RolloutClusters{Cluster: &v1alpha1.RolloutCluster{Name: name, Labels: map[string]string{"ring": ring}}}
}

// wave is a wave of the clusters of a ring.
func wave(ring string, change ...func(*v1alpha1.RolloutWave)) v1alpha1.RolloutWave {
	one := v1alpha1.RolloutWave{Name: ring, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}}}
	for _, change := range change {
		change(&one)
	}
	return one
}

// create makes a rollout of six clusters in waves of one, two and three.
func (r *rig) create(change ...func(*v1alpha1.BundleRolloutSpec)) {
	r.t.Helper()
	object := &v1alpha1.BundleRollout{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	object.Spec = v1alpha1.BundleRolloutSpec{
		SourceRef: v1alpha1.RolloutSourceReference{Name: "bundle"},
		Clusters: []v1alpha1.RolloutClusters{
			cluster("c1", "one"), cluster("c2", "two"), cluster("c3", "two"), cluster("c4", "three"), cluster("c5", "three"), cluster("c6", "three"),
		},
		Template: v1alpha1.RolloutTemplate{Spec: apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName":"deployer","target":{"namespace":"on-$(cluster)"}}`)}},
		Strategy: v1alpha1.RolloutStrategy{
			Waves: []v1alpha1.RolloutWave{wave("one"), wave("two"), wave("three")}, MinReady: v1alpha1.Duration{Duration: time.Second},
		},
		DeletionPolicy: v1alpha1.DeletionOrphan,
	}
	for _, change := range change {
		change(&object.Spec)
	}
	if err := shared.admin.Create(r.t.Context(), object); err != nil {
		r.t.Fatal(err)
	}
}

// edit changes the spec or the metadata of the rollout.
func (r *rig) edit(change func(*v1alpha1.BundleRollout)) {
	r.t.Helper()
	object := r.get()
	before := object.DeepCopy()
	change(object)
	if err := shared.admin.Patch(r.t.Context(), object, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) get() *v1alpha1.BundleRollout {
	r.t.Helper()
	var object v1alpha1.BundleRollout
	if err := shared.admin.Get(r.t.Context(), r.key(name), &object); err != nil {
		r.t.Fatal(err)
	}
	return &object
}

// children are the BundleDeployments of the rollout, by cluster.
func (r *rig) children() map[string]*v1alpha1.BundleDeployment {
	r.t.Helper()
	var list v1alpha1.BundleDeploymentList
	if err := shared.admin.List(r.t.Context(), &list, client.InNamespace(r.namespace), client.MatchingLabels{v1alpha1.RolloutLabel: name}); err != nil {
		r.t.Fatal(err)
	}
	found := map[string]*v1alpha1.BundleDeployment{}
	for i := range list.Items {
		found[list.Items[i].Labels[v1alpha1.ClusterLabel]] = &list.Items[i]
	}
	return found
}

// fake does what the source controller and the deployment controller would.
func (r *rig) fake() map[string]*v1alpha1.BundleDeployment {
	r.t.Helper()
	var sources v1alpha1.BundleSourceList
	if err := shared.admin.List(r.t.Context(), &sources, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	content := map[string]string{}
	for i := range sources.Items {
		source := &sources.Items[i]
		if source.Name == "bundle" {
			continue
		}
		_, digest, _ := strings.Cut(source.Spec.Sources[0].Image.Reference, "@")
		if content[source.Name] = digest; source.Status.Artifact == nil {
			r.publishAs(source, digest, "stable")
		}
	}
	children := r.children()
	for _, on := range slices.Sorted(maps.Keys(children)) {
		if !r.frozen[on] {
			r.settle(children[on], on, content[children[on].Spec.SourceRef.Name])
		}
	}
	return children
}

// settle reports the outcome of a BundleDeployment.
func (r *rig) settle(child *v1alpha1.BundleDeployment, on, content string) {
	r.t.Helper()
	requested := child.Annotations[meta.ReconcileRequestAnnotation]
	fails := r.bad[on+content]
	asItWas := len(child.Status.History) > 0 && (child.Status.History[0].Outcome == v1alpha1.OutcomeFailed) == fails
	if child.Status.ObservedGeneration == child.Generation && child.Status.LastHandledReconcileAt == requested && asItWas || r.slow[on] {
		return
	}
	before := child.DeepCopy()
	at := metav1.NewTime(r.now)
	ready, stalled, outcome := metav1.ConditionTrue, metav1.ConditionFalse, v1alpha1.OutcomeHealthy
	if fails {
		ready, stalled, outcome = metav1.ConditionFalse, metav1.ConditionTrue, v1alpha1.OutcomeFailed
	}
	child.Status.ObservedGeneration, child.Status.LastHandledReconcileAt = child.Generation, requested
	child.Status.History = []v1alpha1.RevisionRecord{{Revision: "stable@" + content, Generation: child.Generation, Outcome: outcome, StartTime: at, CompletionTime: &at}}
	for kind, status := range map[string]metav1.ConditionStatus{"Ready": ready, "Stalled": stalled} {
		apimeta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Faked", LastTransitionTime: at})
	}
	if err := shared.admin.Status().Patch(r.t.Context(), child, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// step is one reconcile, a second after the last one.
func (r *rig) step() error {
	r.t.Helper()
	r.now = r.now.Add(time.Second)
	_, err := r.reconciler.Reconcile(r.t.Context(), ctrl.Request{NamespacedName: r.key(name)})
	r.check()
	return err
}

// steps makes a number of steps; a reconcile that fails is tried again.
func (r *rig) steps(count int) {
	r.t.Helper()
	for range count {
		_ = r.step()
		r.fake()
	}
}

// until steps until the rollout is in a state.
func (r *rig) until(what string, holds func(*v1alpha1.BundleRollout) bool) *v1alpha1.BundleRollout {
	r.t.Helper()
	for range 120 {
		if object := r.get(); object.Status.ObservedGeneration == object.Generation && holds(object) {
			return object
		}
		r.steps(1)
	}
	text, _ := json.MarshalIndent(r.get().Status, "", " ")
	r.t.Fatalf("waited in vain: %s; last seen:\n%s", what, text)
	return nil
}

// why is what a rollout does or waits for.
func why(object *v1alpha1.BundleRollout) string {
	if found := apimeta.FindStatusCondition(object.Status.Conditions, v1alpha1.RolledOutCondition); found != nil {
		return found.Reason
	}
	return ""
}

// because holds for a reason of the condition RolledOut.
func because(reason string) func(*v1alpha1.BundleRollout) bool {
	return func(object *v1alpha1.BundleRollout) bool { return why(object) == reason }
}

// complete holds when a version, or any, is complete.
func complete(version string) func(*v1alpha1.BundleRollout) bool {
	return func(object *v1alpha1.BundleRollout) bool {
		current := object.Status.CurrentRevision
		return why(object) == v1alpha1.ReasonComplete && strings.HasSuffix(current.Revision, digestOf(version))
	}
}

// versions are the versions that the BundleDeployments name, by cluster.
func (r *rig) versions(all ...string) map[string]string {
	r.t.Helper()
	found := map[string]string{}
	for on, child := range r.children() {
		var source v1alpha1.BundleSource
		if err := shared.admin.Get(r.t.Context(), r.key(child.Spec.SourceRef.Name), &source); err != nil {
			r.t.Fatal(err)
		}
		for _, version := range all {
			if strings.HasSuffix(source.Spec.Sources[0].Image.Reference, digestOf(version)) {
				found[on] = version
			}
		}
	}
	return found
}

// condition is the status and the reason of a condition.
func condition(object *v1alpha1.BundleRollout, kind string) string {
	found := apimeta.FindStatusCondition(object.Status.Conditions, kind)
	if found == nil {
		return ""
	}
	return string(found.Status) + " " + found.Reason
}
