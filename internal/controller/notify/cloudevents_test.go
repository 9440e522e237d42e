// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// receiver is an HTTP server that takes CloudEvents, and refuses the first posts.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	refuses int
	bodies  []string
	types   []string
}

func newReceiver(t *testing.T, refuses int) *receiver {
	t.Helper()
	r := &receiver{refuses: refuses}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies, r.types = append(r.bodies, string(body)), append(r.types, request.Header.Get("Content-Type"))
		if len(r.bodies) <= r.refuses {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// TestCloudEvents posts events to a receiver, which reads them as the specification says: structured mode, required
// attributes, and one id for all attempts.
func TestCloudEvents(t *testing.T) {
	server := newReceiver(t, 1)
	r, below := newRecorderOf(t, Options{Address: server.URL + "/hook", Format: CloudEvents})
	r.instance = "pod-1"
	go func() { _ = r.Start(t.Context()) }()
	deployment := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "2"}}
	deployment.Status.Attempted.Revision = "main@sha256:b"
	deployment.Status.History = []v1alpha1.RevisionRecord{{Revision: "main@sha256:b", OriginRevision: "main@sha1:2"}}
	published := source()
	published.Status.ExternalArtifact = "app" // which is a matter of Flux only
	began := time.Now()
	r.Eventf(deployment, nil, corev1.EventTypeWarning, "PlanRefused", "Plan", "refused: %s", "\"quoted\" <&> \xff")
	r.Eventf(published, nil, corev1.EventTypeNormal, "NewArtifact", "Publish", "published it")
	r.counted(t, "sent", 2)
	server.mu.Lock()
	defer server.mu.Unlock()
	if len(server.bodies) != 3 || len(below.Events) != 2 {
		t.Fatalf("%d posts, want 3: %q", len(server.bodies), server.bodies)
	}
	if server.bodies[0] != server.bodies[1] {
		t.Errorf("the second attempt is another event:\n%s\n%s", server.bodies[0], server.bodies[1])
	}
	got := make([]event.Event, 2)
	for i, body := range server.bodies[1:] {
		if err := json.Unmarshal([]byte(body), &got[i]); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if err := got[i].Validate(); err != nil || got[i].SpecVersion() != "1.0" {
			t.Errorf("%v: %s", err, body)
		}
		if got[i].Time().Before(began.Add(-time.Second)) || got[i].Time().Location() != time.UTC {
			t.Errorf("time %s", got[i].Time())
		}
		if server.types[i] != "application/cloudevents+json" {
			t.Errorf("Content-Type %q", server.types[i])
		}
	}
	if got[0].ID() == got[1].ID() || got[0].ID() == "" {
		t.Errorf("ids %q and %q", got[0].ID(), got[1].ID())
	}
	attributes := func(e event.Event) []string {
		return []string{e.Source(), e.Type(), e.Subject(), e.DataContentType()}
	}
	if diff := cmp.Diff([]string{"/satchel.dev/controller", "dev.satchel.bundledeployment.PlanRefused",
		"/apis/satchel.dev/v1alpha1/namespaces/team/bundledeployments/app", "application/json"}, attributes(got[0])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/satchel.dev/controller", "dev.satchel.bundlesource.NewArtifact",
		"/apis/satchel.dev/v1alpha1/namespaces/team/bundlesources/app", "application/json"}, attributes(got[1])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var data Data
	if err := json.Unmarshal(got[0].Data(), &data); err != nil {
		t.Fatal(err)
	}
	want := Data{
		Object:   Object{APIVersion: "satchel.dev/v1alpha1", Kind: "BundleDeployment", Namespace: "team", Name: "app", UID: "2"},
		Severity: "error", Reason: "PlanRefused", Message: `refused: "quoted" <&> `, Revision: "main@sha256:b", OriginRevision: "main@sha1:2",
		Controller: "controller", Instance: "pod-1",
	}
	if diff := cmp.Diff(want, data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// TestAddressIsNotShown: a path and a query may hold a credential, and errors are logged.
func TestAddressIsNotShown(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	for _, address := range []string{refusing.URL, "http://127.0.0.1:1"} {
		withSecrets := strings.Replace(address, "http://", "http://user:CANARY-1@", 1) + "/CANARY-2?token=CANARY-3"
		r, _ := newRecorderOf(t, Options{Address: withSecrets, Format: CloudEvents})
		err := r.send(t.Context(), post{reason: "Ready", contentType: "application/json", body: 1})
		if err == nil || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "127.0.0.1:") {
			t.Errorf("got %v", err)
		}
	}
}

func TestFormat(t *testing.T) {
	var f Format
	if err := f.Set("json"); err == nil || f != "" {
		t.Errorf("an unknown format is taken: %q", f)
	}
	if err := f.Set("cloudevents"); err != nil || f != CloudEvents {
		t.Errorf("%q: %v", f, err)
	}
	if _, err := New(nil, nil, Options{Address: "http://x/", Format: "json", Registry: prometheus.NewRegistry()}); err == nil {
		t.Error("an unknown format is taken")
	}
}

// TestPageHasTheEvent: the event on the page about notifications has the attributes and data that are posted.
func TestPageHasTheEvent(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```text\n{")
	text, _, ended := strings.Cut(text, "```\n")
	var shown event.Event
	if err := json.Unmarshal([]byte("{"+text), &shown); !found || !ended || err != nil {
		t.Fatalf("the page has no event: %v", err)
	}
	deployment := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "till", UID: "0a0c9b3e-7c1f-4d0c-8f5e-2f0b6a3d9d10"}}
	deployment.Status.Attempted.Revision = "main@sha256:4f2c…"
	deployment.Status.History = []v1alpha1.RevisionRecord{{Revision: "main@sha256:4f2c…", OriginRevision: "main@sha1:5e6f7a8b…"}}
	r, _ := newRecorderOf(t, Options{Address: "http://127.0.0.1:1/", Format: CloudEvents})
	r.options.Controller, r.instance = "bundle-deployment-controller", "bundle-deployment-controller-7d9c8b7f6-x2x9p"
	r.Eventf(deployment, nil, corev1.EventTypeNormal, "Upgraded", "Apply", "upgraded from main@sha1:8a1b2c3d to main@sha1:5e6f7a8b: 1 object created, 2 updated")
	posted, isEvent := (<-r.queue).body.(event.Event)
	if !isEvent {
		t.Fatal("no CloudEvent is posted")
	}
	posted.SetID(shown.ID())
	posted.SetTime(shown.Time())
	if diff := cmp.Diff(plain(t, posted), plain(t, shown)); diff != "" {
		t.Errorf("the event of the page (-posted +page):\n%s", diff)
	}
}

// plain is an event as a JSON value.
func plain(t *testing.T, e event.Event) (value map[string]any) {
	t.Helper()
	text, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}
