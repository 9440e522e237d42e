// SPDX-License-Identifier: Apache-2.0

// Package notify posts events to Flux's notification controller, or another receiver of
// its format, beside recording them in Kubernetes. It never blocks: events go through a
// bounded queue, and are dropped when it is full.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// queued is how many events may wait: some minutes of a busy cluster, and a few MiB.
	queued = 1000
	// attempts is how often an event is posted before it is dropped.
	attempts = 3
	// postTimeout bounds one post.
	postTimeout = 10 * time.Second
	// longestMessage is the limit of the format.
	longestMessage = 39000
)

// Recorder records events in Kubernetes and queues them for an address.
type Recorder struct {
	events.EventRecorder
	controller, instance, address string
	scheme                        *runtime.Scheme
	client                        *http.Client
	queue                         chan eventv1.Event
	outcome                       *prometheus.CounterVec
	pause                         time.Duration
}

// New returns a recorder on top of another one. The address is an http or https URL. It
// counts the outcomes of events in satchel_flux_events_total: sent, failed or dropped.
func New(next events.EventRecorder, scheme *runtime.Scheme, controller, address string, registry prometheus.Registerer) (*Recorder, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, fmt.Errorf("--events-addr is no URL such as http://notification-controller.flux-system.svc.cluster.local./")
	}
	outcome := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "satchel_flux_events_total", Help: "Events for the address of --events-addr, by outcome.",
	}, []string{"outcome"})
	if err := registry.Register(outcome); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		instance = controller
	}
	return &Recorder{
		EventRecorder: next, controller: controller, instance: instance, address: address, scheme: scheme,
		client:  &http.Client{Timeout: postTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		queue:   make(chan eventv1.Event, queued),
		outcome: outcome, pause: time.Second,
	}, nil
}

// Eventf implements events.EventRecorder. It never waits.
func (r *Recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		r.outcome.WithLabelValues("dropped").Inc()
		return
	}
	message := fmt.Sprintf(note, args...)
	event := eventv1.Event{
		InvolvedObject: *about, Severity: eventv1.EventSeverityInfo, Timestamp: metav1.Now(), Reason: reason,
		Message:             strings.ToValidUTF8(message[:min(len(message), longestMessage)], ""),
		Metadata:            revisionMetadata(v1alpha1.GroupVersion.Group, regarding),
		ReportingController: r.controller, ReportingInstance: r.instance,
	}
	if kind == corev1.EventTypeWarning {
		event.Severity = eventv1.EventSeverityError
	}
	r.enqueue(event)
	if external, ok := ofExternalArtifact(event, regarding); ok {
		r.enqueue(external)
	}
}

func (r *Recorder) enqueue(event eventv1.Event) {
	select {
	case r.queue <- event:
	default:
		r.outcome.WithLabelValues("dropped").Inc()
	}
}

// ofExternalArtifact is the event of a BundleSource as one of the ExternalArtifact that shows its artifact to Flux. Flux's
// CRDs let an Alert name an ExternalArtifact, and no kind of Satchel.
func ofExternalArtifact(event eventv1.Event, regarding runtime.Object) (eventv1.Event, bool) {
	source, ok := regarding.(*v1alpha1.BundleSource)
	if !ok || source.Status.ExternalArtifact == "" {
		return event, false
	}
	event.InvolvedObject = corev1.ObjectReference{
		APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.ExternalArtifactKind,
		Namespace: source.Namespace, Name: source.Status.ExternalArtifact,
	}
	event.Metadata = revisionMetadata(sourcev1.GroupVersion.Group, regarding)
	return event, true
}

// revisionsOf are the revision that an event is about and its origin revision; empty where there is none yet.
func revisionsOf(object runtime.Object) (revision, origin string) {
	switch o := object.(type) {
	case *v1alpha1.BundleSource:
		if o.Status.Artifact != nil {
			return o.Status.Artifact.Revision, o.Status.OriginRevision
		}
	case *v1alpha1.BundleDeployment:
		revision = o.Status.LastAttemptedRevision
		if len(o.Status.History) > 0 && o.Status.History[0].Revision == revision {
			origin = o.Status.History[0].OriginRevision
		}
		if o.Status.LastAppliedRevision == revision && o.Status.LastAppliedOriginRevision != "" {
			origin = o.Status.LastAppliedOriginRevision
		}
	}
	return revision, origin
}

// revisionMetadata has the revision and its origin under the keys that Flux expects: it drops keys that do not begin with the
// API group of the object.
func revisionMetadata(group string, object runtime.Object) map[string]string {
	revision, origin := revisionsOf(object)
	if revision == "" {
		return nil
	}
	metadata := map[string]string{group + "/" + eventv1.MetaRevisionKey: revision}
	if origin != "" {
		metadata[group+"/"+eventv1.MetaOriginRevisionKey] = origin
	}
	return metadata
}

// Start implements manager.Runnable: it posts queued events until ctx ends.
func (r *Recorder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-r.queue:
			outcome := "sent"
			if err := r.send(ctx, event); err != nil {
				outcome = "failed"
				ctrl.LoggerFrom(ctx).Info("an event was not accepted", "reason", event.Reason, "error", err.Error())
			}
			r.outcome.WithLabelValues(outcome).Inc()
		}
	}
}

// send posts an event, with retries if they may help.
func (r *Recorder) send(ctx context.Context, event eventv1.Event) error {
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		again, err := r.post(ctx, body)
		if err == nil || !again || attempt == attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.pause << attempt):
		}
	}
}

// post tells whether another attempt may help.
func (r *Recorder) post(ctx context.Context, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.address, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return true, err
	}
	if err := response.Body.Close(); err != nil {
		return true, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests,
			fmt.Errorf("%s answers %s", r.address, response.Status)
	}
	return false, nil
}
