// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
)

// mostReported is how many clusters a rollout may have by default.
const mostReported = 5000

// TestR34ReportedStatuses rolls two revisions out on 5,000 clusters of which the test reports the statuses, in place of the deployment
// controller, and measures what that costs the rollout controller and the API server.
func TestR34ReportedStatuses(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("takes minutes: for the release suite, SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	n := mostReported
	if os.Getenv(clustersVariable) != "" {
		n = size(t)
	}
	w := startWorld(t, Options{Clusters: n, Without: "bundle-deployment-controller"})
	stop := w.report(t)
	defer stop()
	for run, version := range []string{"v1", "v2"} {
		before := must1(w.served(t.Context()))(t)
		must(t, w.Publish(t.Context(), version))
		if run == 0 {
			must(t, w.Create(t.Context(), strategyOf(n)))
		}
		began := time.Now()
		done := must1(w.Await(t.Context(), version, limit(n), func(o *v1alpha1.BundleRollout) bool {
			return completeWith(int64(run+1))(o) && o.Status.Clusters != nil && int(o.Status.Clusters.Updated) == n
		}))(t)
		after := must1(w.served(t.Context()))(t)
		writes := (after.writes - before.writes) / float64(n)
		t.Logf("%s on %s clusters in %s: %.3f writes of BundleDeployments a cluster; the storage has %.0f MiB, %.0f before", version, done.Status.Progress,
			time.Since(began).Round(100*time.Millisecond), writes, after.mebibytes, before.mebibytes)
		if writes > 1.05 {
			t.Errorf("%s: %.3f writes a cluster, more than 1.05", version, writes)
		}
	}
	for _, p := range w.Controllers {
		peak := must1(p.PeakMiB())(t)
		t.Logf("%s: at most %.0f MiB", p.Name, peak)
	}
	decisions(t, w)
}

// report reports each BundleDeployment of the rollout as healthy once it has changed, until stop is called.
func (w *World) report(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := w.reportAll(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("reporting statuses: %v", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// reportAll is one round of report.
func (w *World) reportAll(ctx context.Context) error {
	var list v1alpha1.BundleDeploymentList
	if err := w.Client.List(ctx, &list, client.InNamespace(Namespace), client.HasLabels{v1alpha1.RolloutLabel}); err != nil {
		return err
	}
	var sources v1alpha1.BundleSourceList
	if err := w.Client.List(ctx, &sources, client.InNamespace(Namespace)); err != nil {
		return err
	}
	revisions := map[string]string{}
	for i := range sources.Items {
		if artifact := sources.Items[i].Status.Artifact; artifact != nil {
			revisions[sources.Items[i].Name] = artifact.Revision
		}
	}
	var late []*v1alpha1.BundleDeployment
	for i := range list.Items {
		one := &list.Items[i]
		if _, fetched := revisions[one.Spec.SourceRef.Name]; fetched &&
			(one.Status.ObservedGeneration != one.Generation || one.Status.LastHandledReconcileAt != one.Annotations[meta.ReconcileRequestAnnotation]) {
			late = append(late, one)
		}
	}
	return errors.Join(parallel.Each(ctx, atOnce, late, func(ctx context.Context, one *v1alpha1.BundleDeployment) error {
		return client.IgnoreNotFound(w.reportHealthy(ctx, one, revisions[one.Spec.SourceRef.Name]))
	})...)
}

func (w *World) reportHealthy(ctx context.Context, one *v1alpha1.BundleDeployment, revision string) error {
	before, now := one.DeepCopy(), metav1.Now()
	one.Status.ObservedGeneration, one.Status.LastHandledReconcileAt = one.Generation, one.Annotations[meta.ReconcileRequestAnnotation]
	one.Status.Applied.Revision = revision
	one.Status.History = []v1alpha1.RevisionRecord{{
		Revision: revision, Generation: one.Generation, Outcome: v1alpha1.OutcomeHealthy, StartTime: now, CompletionTime: &now,
	}}
	for kind, status := range map[string]metav1.ConditionStatus{"Ready": metav1.ConditionTrue, "Stalled": metav1.ConditionFalse} {
		apimeta.SetStatusCondition(&one.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Reported", LastTransitionTime: now})
	}
	return w.Client.Status().Patch(ctx, one, client.MergeFrom(before))
}

// served is what the API server has done and stored so far.
type served struct {
	// writes of BundleDeployments, without dry runs and without their statuses.
	writes    float64
	mebibytes float64
}

func (w *World) served(ctx context.Context) (served, error) {
	clients, err := kubernetes.NewForConfig(w.ControlPlane.RESTConfig())
	if err != nil {
		return served{}, err
	}
	text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return served{}, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		return served{}, fmt.Errorf("parsing the metrics of the API server: %w", err)
	}
	var found served
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		isWrite := labels["verb"] == "POST" || labels["verb"] == "PATCH" || labels["verb"] == "APPLY" || labels["verb"] == "PUT"
		if labels["resource"] == "bundledeployments" && labels["subresource"] == "" && labels["dry_run"] == "" && isWrite {
			found.writes += metric.GetCounter().GetValue()
		}
	}
	for _, metric := range families["apiserver_storage_size_bytes"].GetMetric() {
		found.mebibytes += metric.GetGauge().GetValue() / (1 << 20)
	}
	return found, nil
}
