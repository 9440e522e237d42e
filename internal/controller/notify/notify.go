// SPDX-License-Identifier: Apache-2.0

// Package notify posts events to Flux's notification controller, beside recording them in Kubernetes. It never blocks:
// events go through a bounded queue, and are dropped when it is full.
package notify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
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
	// longestMessage is the limit of the notification controller.
	longestMessage = 39000
)

// Options say where events are posted.
type Options struct {
	// Controller is the name of the controller that reports the events.
	Controller string
	// Address is an http or https URL. Errors and logs name only its host: a path or a query may hold a credential.
	Address string
	// Registry receives the metric satchel_notifications_total: the events by outcome, which is sent, failed or dropped.
	Registry prometheus.Registerer
}

// Recorder records events in Kubernetes and queues them for an address.
type Recorder struct {
	events.EventRecorder
	options  Options
	instance string
	host     string // of the address, for messages
	scheme   *runtime.Scheme
	client   *http.Client
	queue    chan eventv1.Event
	outcome  *prometheus.CounterVec
	pause    time.Duration
}

// New returns a recorder on top of another one.
func New(next events.EventRecorder, scheme *runtime.Scheme, o Options) (*Recorder, error) {
	parsed, err := url.Parse(o.Address)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, fmt.Errorf("--events-addr is no URL such as http://notification-controller.flux-system.svc.cluster.local./")
	}
	outcome := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "satchel_notifications_total", Help: "Events for the address of --events-addr, by outcome.",
	}, []string{"outcome"})
	if err := o.Registry.Register(outcome); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		instance = o.Controller
	}
	return &Recorder{
		EventRecorder: next, options: o, instance: instance, host: parsed.Host, scheme: scheme,
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
	severity := eventv1.EventSeverityInfo
	if kind == corev1.EventTypeWarning {
		severity = eventv1.EventSeverityError
	}
	event := eventv1.Event{
		InvolvedObject: *about, Severity: severity, Timestamp: metav1.Now(), Reason: reason,
		Message:             strings.ToValidUTF8(message[:min(len(message), longestMessage)], ""),
		Metadata:            revisionMetadata(v1alpha1.GroupVersion.Group, regarding),
		ReportingController: r.options.Controller, ReportingInstance: r.instance,
	}
	r.enqueue(event)
	if external, ok := ofExternalArtifact(event, regarding); ok {
		r.enqueue(external)
	}
}

func (r *Recorder) enqueue(one eventv1.Event) {
	select {
	case r.queue <- one:
	default:
		r.outcome.WithLabelValues("dropped").Inc()
	}
}

// Start implements manager.Runnable: it posts queued events until ctx ends.
func (r *Recorder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case one := <-r.queue:
			outcome := "sent"
			if err := r.send(ctx, one); err != nil {
				outcome = "failed"
				ctrl.LoggerFrom(ctx).Info("an event was not accepted", "reason", one.Reason, "error", err.Error())
			}
			r.outcome.WithLabelValues(outcome).Inc()
		}
	}
}
