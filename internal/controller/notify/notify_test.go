// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

func newRecorder(t *testing.T, address string) (*Recorder, *events.FakeRecorder) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	below := events.NewFakeRecorder(5000)
	r, err := New(below, scheme, Options{Address: address, Controller: "controller", Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	r.pause = time.Microsecond
	return r, below
}

func source() *v1alpha1.BundleSource {
	s := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "1"}}
	s.Status.Artifact = &meta.Artifact{Revision: "v1@sha256:abc"}
	return s
}

// counted waits until the given number of events have an outcome.
func (r *Recorder) counted(t *testing.T, outcome string, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if int(testutil.ToFloat64(r.outcome.WithLabelValues(outcome))) == want {
			return
		}
	}
	t.Errorf("%v events are %s, want %d", testutil.ToFloat64(r.outcome.WithLabelValues(outcome)), outcome, want)
}

func TestEventsArePosted(t *testing.T) {
	var mu sync.Mutex
	var got []eventv1.Event
	var failures atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if failures.Add(1) <= 2 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		var event eventv1.Event
		if err := json.NewDecoder(request.Body).Decode(&event); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, event)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	r, below := newRecorder(t, server.URL)
	go func() { _ = r.Start(t.Context()) }()
	r.Eventf(source(), nil, corev1.EventTypeNormal, "NewArtifact", "Publish", "published %s", "it")
	r.Eventf(source(), nil, corev1.EventTypeWarning, "NotFound", "Fetch", "it is gone")
	r.counted(t, "sent", 2)
	mu.Lock()
	defer mu.Unlock()
	first, second := got[0], got[1]
	if first.InvolvedObject.Kind != v1alpha1.BundleSourceKind || first.InvolvedObject.APIVersion != "satchel.dev/v1alpha1" || first.InvolvedObject.Name != "app" ||
		first.Message != "published it" || first.Severity != eventv1.EventSeverityInfo || first.Metadata["satchel.dev/revision"] != "v1@sha256:abc" {
		t.Errorf("got %+v", first)
	}
	if second.Severity != eventv1.EventSeverityError || second.Reason != "NotFound" || second.ReportingController != "controller" {
		t.Errorf("got %+v", second)
	}
	if len(below.Events) != 2 {
		t.Errorf("%d events were recorded in Kubernetes", len(below.Events))
	}
}

// TestEventsOfExternalArtifacts: an Alert of Flux that names the ExternalArtifact hears what the BundleSource says, with the
// revision under the key of Flux's group, because Flux drops other keys.
func TestEventsOfExternalArtifacts(t *testing.T) {
	r, below := newRecorder(t, "http://127.0.0.1:1/")
	published := source()
	published.Status.ExternalArtifact = "app"
	r.Eventf(published, nil, corev1.EventTypeWarning, "NotFound", "Fetch", "it is gone")
	if len(r.queue) != 2 || len(below.Events) != 1 {
		t.Fatalf("%d events wait to be posted and %d are recorded in Kubernetes, want 2 and 1", len(r.queue), len(below.Events))
	}
	if own := <-r.queue; own.InvolvedObject.Kind != v1alpha1.BundleSourceKind || own.Metadata["satchel.dev/revision"] != "v1@sha256:abc" {
		t.Errorf("the first is %+v", own)
	}
	external := <-r.queue
	want := corev1.ObjectReference{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "ExternalArtifact", Namespace: "team", Name: "app"}
	if external.InvolvedObject != want || external.Severity != eventv1.EventSeverityError || external.Message != "it is gone" ||
		len(external.Metadata) != 1 || external.Metadata["source.toolkit.fluxcd.io/revision"] != "v1@sha256:abc" {
		t.Errorf("the second is %+v", external)
	}
}

// TestFullQueue: an address that does not answer blocks no caller, and Kubernetes has all events.
func TestFullQueue(t *testing.T) {
	r, below := newRecorder(t, "http://127.0.0.1:1/")
	for range queued + 7 {
		r.Eventf(source(), nil, corev1.EventTypeNormal, "NewArtifact", "Publish", "published")
	}
	r.counted(t, "dropped", 7)
	if len(below.Events) != queued+7 {
		t.Errorf("%d events were recorded in Kubernetes", len(below.Events))
	}
}

func TestRefusedEventsAreDropped(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "malformed", http.StatusBadRequest)
	}))
	t.Cleanup(server.Close)
	r, _ := newRecorder(t, server.URL)
	go func() { _ = r.Start(t.Context()) }()
	r.Eventf(source(), nil, corev1.EventTypeNormal, "NewArtifact", "Publish", "published")
	r.counted(t, "failed", 1)
	if asked.Load() != 1 {
		t.Errorf("%d posts of what is refused", asked.Load())
	}
}

func TestAddress(t *testing.T) {
	for _, address := range []string{"", "notification-controller", "ftp://x", "http://"} {
		if _, err := New(nil, nil, Options{Controller: "controller", Address: address, Registry: prometheus.NewRegistry()}); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
}

// Flux shows the origin revision beside the revision: of what is applied, or else of what is tried.
func TestOriginRevision(t *testing.T) {
	deployment := func(applied, origin string) *v1alpha1.BundleDeployment {
		var d v1alpha1.BundleDeployment
		d.Status.Attempted.Revision, d.Status.Applied.Revision, d.Status.Applied.OriginRevision = "main@sha256:b", applied, origin
		d.Status.History = []v1alpha1.RevisionRecord{{Revision: "main@sha256:b", OriginRevision: "main@sha1:2"}}
		return &d
	}
	source := &v1alpha1.BundleSource{}
	source.Status.Artifact, source.Status.OriginRevision = &meta.Artifact{Revision: "main@sha256:b"}, "main@sha1:3"
	for name, tc := range map[string]struct {
		object runtime.Object
		want   map[string]string
	}{
		"tried":   {deployment("main@sha256:a", "main@sha1:1"), map[string]string{"x/revision": "main@sha256:b", "x/originRevision": "main@sha1:2"}},
		"applied": {deployment("main@sha256:b", "main@sha1:3"), map[string]string{"x/revision": "main@sha256:b", "x/originRevision": "main@sha1:3"}},
		"source":  {source, map[string]string{"x/revision": "main@sha256:b", "x/originRevision": "main@sha1:3"}},
		"nothing": {&v1alpha1.BundleSource{}, nil},
	} {
		if diff := cmp.Diff(tc.want, revisionMetadata("x", tc.object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAddressIsNotShown: a path and a query may hold a credential, and errors are logged.
func TestAddressIsNotShown(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	for _, address := range []string{refusing.URL, "http://127.0.0.1:1"} {
		withSecrets := strings.Replace(address, "http://", "http://user:CANARY-1@", 1) + "/CANARY-2?token=CANARY-3"
		r, _ := newRecorder(t, withSecrets)
		err := r.send(t.Context(), eventv1.Event{Reason: "Ready"})
		if err == nil || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "127.0.0.1:") {
			t.Errorf("got %v", err)
		}
	}
}
