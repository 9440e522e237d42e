// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/internal/controller/upstream/figures"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// alone is a separate reconciler with its own storage and metrics for suspended sources,
// which the controller of the rig does not touch.
func alone(t *testing.T, r *rig, change func(*source.Deps)) *source.Reconciler {
	t.Helper()
	store, err := storage.Open(storage.Options{Dir: t.TempDir(), BaseURL: "http://127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	deps := source.Deps{
		Client: unsuspended{installation.Unindexed(r.admin)}, APIReader: r.admin, Store: store, Scratch: t.TempDir(), Upstreams: upstreams(),
		Events: noEvents{}, PerNamespace: 5,
	}
	if change != nil {
		change(&deps)
	}
	return source.NewReconciler(deps)
}

// reconcile runs one reconcile.
func reconcile(t *testing.T, of *source.Reconciler, key client.ObjectKey) {
	t.Helper()
	if _, err := of.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
}

// Each operation on an upstream is measured by kind and result, and so is each avoided
// download.
func TestMeasures(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	registry := prometheus.NewRegistry()
	measures, err := figures.NewMeasures(registry)
	if err != nil {
		t.Fatal(err)
	}
	var requestedAt string
	reconciler := alone(t, r, func(d *source.Deps) {
		d.Measures = measures
		d.Client = requested{d.Client, &requestedAt}
	})
	key := newSigner(t)
	r.secret(t, namespace, "keys", map[string]string{"alice.pub": key.public(t)})
	digest, err := r.registry.Push(t.Context(), "measured:v1", files("a", "one"))
	if err != nil {
		t.Fatal(err)
	}
	r.signImage(t, key, "measured", digest)
	signed := image(r.registry.Host() + "/measured:v1")
	signed[0].Image.Verify = &v1alpha1.ImageVerification{Provider: "cosign", SecretRef: &v1alpha1.LocalReference{Name: "keys"}}
	missing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(missing.Close)
	for name, sources := range map[string][]v1alpha1.Source{
		"image": signed, "http": {{HTTP: &v1alpha1.HTTPSource{URL: missing.URL + "/b.tar"}}},
	} {
		object := r.suspended(t, namespace, name, sources)
		requestedAt = "first"
		reconcile(t, reconciler, object)
		// Without a reconcile request, a source with unchanged trust settings waits for its interval. The object itself is
		// not changed: the controller of the rig would look for the artifact in its own store, and clear the status.
		requestedAt = "second"
		reconcile(t, reconciler, object)
	}
	want := []string{
		"satchel_source_cache_hits_total image 1",
		"satchel_source_cache_misses_total image 1",
		"satchel_source_duration_seconds fetch image ok 1",
		"satchel_source_duration_seconds resolve http NotFound 2",
		"satchel_source_duration_seconds resolve image ok 2",
		"satchel_source_duration_seconds store image ok 1",
		"satchel_source_duration_seconds verify image ok 1",
		"satchel_source_events_suppressed_total 0",
		"satchel_source_uploaded_bytes_total 0",
	}
	if got := series(t, registry); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("measured:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// series are the counters and the counts of histograms, with the values of their labels.
func series(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			text := f.GetName()
			for _, name := range []string{"operation", "kind", "result"} {
				if value := label(m, name); value != "" {
					text += " " + value
				}
			}
			found = append(found, fmt.Sprint(text, " ", m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount())))
		}
	}
	slices.Sort(found)
	return found
}

func label(m *dto.Metric, name string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// suspended creates a source that the controller of the rig leaves alone.
func (r *rig) suspended(t *testing.T, namespace, name string, sources []v1alpha1.Source) client.ObjectKey {
	t.Helper()
	key := r.create(t, namespace, name, sources, func(s *v1alpha1.BundleSource) {
		s.Spec.Suspend = true
		s.Spec.Interval.Duration = time.Hour
	})
	r.unready(t, key, v1alpha1.ReasonSuspended)
	return key
}

// unsuspended is a client to which no source is suspended.
type unsuspended struct{ client.Client }

func (u unsuspended) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := u.Client.Get(ctx, key, into, options...)
	if s, ok := into.(*v1alpha1.BundleSource); ok {
		s.Spec.Suspend = false
	}
	return err
}

// requested is a client to which every source has a reconcile request.
type requested struct {
	client.Client
	at *string
}

func (q requested) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := q.Client.Get(ctx, key, into, options...)
	if s, ok := into.(*v1alpha1.BundleSource); ok {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, meta.ReconcileRequestAnnotation, *q.at)
	}
	return err
}

// noEvents drops events.
type noEvents struct{}

// Eventf implements events.EventRecorder.
func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
