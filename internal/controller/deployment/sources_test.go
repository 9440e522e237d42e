// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// inline is a source spec with any content: the test publishes the artifact.
func inline(name string) *v1alpha1.BundleSourceSpec {
	return &v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: name}}}}
}

func withInline(name string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) { d.Spec.SourceRef, d.Spec.Source = nil, inline(name) }
}

// sourceOf waits for the BundleSource of a deployment.
func (r *rig) sourceOf(t *testing.T, key client.ObjectKey, holds func(*v1alpha1.BundleSource) bool) *v1alpha1.BundleSource {
	t.Helper()
	var source v1alpha1.BundleSource
	r.eventually(t, t.Context(), "the BundleSource", func(ctx context.Context) (bool, string) {
		err := r.admin.Get(ctx, key, &source)
		return err == nil && holds(&source), fmt.Sprint(source.Spec)
	})
	return &source
}

func TestInlineSourceLifeCycle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	key := r.deploy(t, namespace, "app", both(quick, withInline("one")))
	source := r.sourceOf(t, key, func(*v1alpha1.BundleSource) bool { return true })
	var d v1alpha1.BundleDeployment
	if err := r.admin.Get(t.Context(), key, &d); err != nil || !metav1.IsControlledBy(source, &d) {
		t.Errorf("the source is not owned by the deployment (%v)", err)
	}
	r.until(t, key, "waiting for the source", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsUnknown(d, "Ready") && conditions.GetReason(d, "Ready") == v1alpha1.ReasonSourceNotReady
	})
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	r.ready(t, key, first.Revision)

	// A change is carried over; the old revision stays while the new spec is fetched, and when it fails.
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Source = inline("two") })
	r.sourceOf(t, key, func(s *v1alpha1.BundleSource) bool { return s.Spec.Sources[0].ConfigMap.Name == "two" })
	r.until(t, key, "waiting for the new source", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, "Ready") == v1alpha1.ReasonSourceNotReady && conditions.IsUnknown(d, "Ready")
	})
	r.setSource(t, namespace, "app", func(s *v1alpha1.BundleSource) {
		s.Status.ObservedGeneration = s.Generation
		conditions.MarkFalse(s, meta.ReadyCondition, v1alpha1.ReasonNotFound, "configmap two does not exist")
	})
	failed := r.unready(t, key, v1alpha1.ReasonSourceNotReady)
	message := conditions.GetMessage(failed, "Ready")
	if !strings.Contains(message, "configmap two does not exist") || !strings.Contains(message, "revision "+first.Revision+" stays applied and is kept from drifting") {
		t.Errorf("the message does not tell the cause and what runs: %s", message)
	}
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "one")
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.ready(t, key, second.Revision)

	// A request reaches the source.
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, meta.ReconcileRequestAnnotation, "now")
	})
	r.sourceOf(t, key, func(s *v1alpha1.BundleSource) bool { return s.Annotations[meta.ReconcileRequestAnnotation] == "now" })
	r.until(t, key, "the request is handled", func(d *v1alpha1.BundleDeployment) bool { return d.Status.LastHandledReconcileAt == "now" })
	r.remove(t, key)
	r.gone(t, object("satchel.dev/v1alpha1", "BundleSource", namespace, "app"))
}

func TestInlineSourceGoesWhenAnotherIsReferredTo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	key := r.deploy(t, namespace, "app", withInline("one"))
	r.sourceOf(t, key, func(*v1alpha1.BundleSource) bool { return true })
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	r.ready(t, key, first.Revision)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Source, d.Spec.SourceRef = nil, &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "other"}
	})
	r.unready(t, key, v1alpha1.ReasonSourceNotFound)
	old := object("satchel.dev/v1alpha1", "BundleSource", namespace, "app")
	r.must(t, old) // until there is something to install instead
	second := r.publish(t, namespace, "other", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.ready(t, key, second.Revision)
	r.gone(t, old)
}

func TestInlineSourceOfAnotherOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", withInline("one"))
	d := r.unready(t, key, v1alpha1.ReasonSourceNotOwned)
	if !conditions.IsTrue(d, meta.StalledCondition) {
		t.Errorf("not stalled:\n%s", describe(d))
	}
	var source v1alpha1.BundleSource
	if err := r.admin.Get(t.Context(), key, &source); err != nil || len(source.OwnerReferences) > 0 || source.Spec.Sources[0].ConfigMap.Name != "content" {
		t.Errorf("a foreign source was changed (%v): %v", err, source.Spec)
	}
	r.delete(t, &source)
	r.sourceOf(t, key, func(s *v1alpha1.BundleSource) bool { return len(s.OwnerReferences) == 1 })
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.ready(t, key, second.Revision)
}

func TestSourceThatDoesNotExist(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	key := r.deploy(t, namespace, "app", nil) // nothing but the event of the source wakes it soon
	d := r.unready(t, key, v1alpha1.ReasonSourceNotFound)
	if want := "bundlesource " + namespace + "/app does not exist: create it, or correct spec.sourceRef.name"; conditions.GetMessage(d, "Ready") != want {
		t.Errorf("the message is %q, want %q", conditions.GetMessage(d, "Ready"), want)
	}
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	r.ready(t, key, published.Revision)
	// Deleted later: what runs goes on running.
	r.delete(t, &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}})
	d = r.unready(t, key, v1alpha1.ReasonSourceNotFound)
	if !strings.Contains(conditions.GetMessage(d, "Ready"), "revision "+published.Revision+" stays applied and is kept from drifting") {
		t.Errorf("the message does not say what runs: %s", conditions.GetMessage(d, "Ready"))
	}
	if r.value(t, t.Context(), namespace, "a") != "one" {
		t.Error("an object went with the source")
	}
}

func TestSourceThatCannotBePolled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", nil)
	r.ready(t, key, published.Revision)
	r.setSource(t, namespace, "app", func(s *v1alpha1.BundleSource) {
		conditions.MarkFalse(s, meta.ReadyCondition, v1alpha1.ReasonUnreachable, "registry does not answer")
	})
	d := r.until(t, key, "SourceReady is False", func(d *v1alpha1.BundleDeployment) bool { return conditions.IsFalse(d, v1alpha1.SourceReadyCondition) })
	if !conditions.IsTrue(d, "Ready") || !strings.Contains(conditions.GetMessage(d, v1alpha1.SourceReadyCondition), "registry does not answer") {
		t.Errorf("want Ready True and SourceReady with the cause:\n%s", describe(d))
	}
}

func TestArtifactServerDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	r.takeDown(t, namespace, http.StatusServiceUnavailable)
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "one")
	if d := r.ready(t, key, first.Revision); !conditions.IsTrue(d, v1alpha1.SourceReadyCondition) {
		t.Errorf("the cached artifact is not used:\n%s", describe(d))
	}
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.unready(t, key, v1alpha1.ReasonArtifactFailed)
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "one")
	r.down.Delete(namespace)
	r.ready(t, key, second.Revision)
}

// TestF24AbsentArtifactIsAskedForSeldom: while the server does not have the advertised artifact, it is
// asked once in five seconds, however many deployments need it; the applied revision stays.
func TestF24AbsentArtifactIsAskedForSeldom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	absent := r.takeDown(t, namespace, http.StatusNotFound)
	began := time.Now()
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	eager := r.deploy(t, namespace, "eager", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.SourceRef.Name = "app" }))
	r.unready(t, eager, v1alpha1.ReasonArtifactFailed)
	d := r.unready(t, key, v1alpha1.ReasonArtifactFailed)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "the artifact server no longer has it: the source has to store it again") {
		t.Errorf("the message does not say what is wrong: %s", message)
	}
	looks := 0
	for ; time.Since(began) < 8*time.Second; looks++ {
		r.handled(t, key)
	}
	took := time.Since(began).Seconds()
	asked := absent.asked.Load()
	t.Logf("%d requests in %.1f s with %d requested reconciles", asked, took, looks)
	if most := int32(took/5) + 1; asked > most || asked < 2 {
		t.Errorf("%d requests in %.1f s, want 2 to %d", asked, took, most)
	}
	r.delete(t, aConfigMap(namespace, "a"))
	r.holds(t, namespace, "a", "one")
	r.down.Delete(namespace)
	r.ready(t, key, second.Revision)
	r.remove(t, eager) // or it would claim the object while the first one goes
}

func TestSameContentUnderAnotherTag(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	bundle := fstest.MapFS{"a.yaml": configMap("a", "one")}
	first := r.publish(t, namespace, "app", "v1", bundle)
	key := r.deploy(t, namespace, "app", nil)
	r.ready(t, key, first.Revision)
	version := r.must(t, aConfigMap(namespace, "a")).GetResourceVersion()
	second := r.publish(t, namespace, "app", "v2", bundle)
	if first.Revision == second.Revision || first.Digest != second.Digest {
		t.Fatalf("want another revision of the same content: %v, %v", first, second)
	}
	d := r.ready(t, key, second.Revision)
	if d.Status.Applied.Revision != second.Revision || r.must(t, aConfigMap(namespace, "a")).GetResourceVersion() != version {
		t.Errorf("last applied is %s, and the object must not be written", d.Status.Applied.Revision)
	}
}

func TestRequestIsHandledAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", nil) // the interval is ten minutes
	r.ready(t, key, published.Revision)
	r.delete(t, aConfigMap(namespace, "a"))
	began := time.Now()
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, meta.ReconcileRequestAnnotation, "2026-01-01")
	})
	r.until(t, key, "the request is acknowledged", func(d *v1alpha1.BundleDeployment) bool { return d.Status.LastHandledReconcileAt == "2026-01-01" })
	r.holds(t, namespace, "a", "one")
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("took %s", took)
	}
}
