// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
)

// mostGrowth is by how many MiB attacks of a tenant may raise the peak memory of the rollout controller: six times what they did.
const mostGrowth = 300

// TestM38Memory attacks the process of the rollout controller with variables that multiply, beside 500 Secrets with annotations of 255 kB, and reports
// its peak memory.
func TestM38Memory(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("stores 127 MB of annotations: for the release suite, SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	ctx := t.Context()
	w := startWorld(t, Options{})
	must(t, w.Publish(ctx, "v1"))
	process := w.process(t, "bundle-rollout-controller")
	must(t, w.Create(ctx, v1alpha1.RolloutStrategy{}))
	quiet := w.peakAfter(t, process, "", "")
	w.storeSecrets(t, 500, 255_000)

	references := func(n int) string {
		return fmt.Sprintf(`{"serviceAccountName":"deployer","processors":[{"variables":{"values":{"b":"%s"}}}]}`, strings.Repeat("$(a)", n))
	}
	kilo := strings.Repeat("y", 1024)
	annotation := []v1alpha1.RolloutVariable{{Name: "a", Annotation: "big"}}
	peak := quiet
	for _, attack := range []struct {
		name, template string
		variables      []v1alpha1.RolloutVariable
		reason         string
	}{
		{"annotations that no variable names", `{"serviceAccountName":"deployer"}`, nil, ""},
		{"12,000 references to an annotation of 255 kB", references(12_000), annotation, "InvalidChild"},
		{"12,000 references to a value of 1,024 bytes", references(12_000), []v1alpha1.RolloutVariable{{Name: "a", Value: &kilo}}, "InvalidSpec"},
		{"15,000 references to a value of 1,024 bytes", references(15_000), []v1alpha1.RolloutVariable{{Name: "a", Value: &kilo}}, "InvalidSpec"},
		{"one reference to an annotation of 255 kB", references(1), annotation, "InvalidChild"},
	} {
		must(t, w.Edit(ctx, func(o *v1alpha1.BundleRollout) {
			o.Spec.Template.Spec.Raw = []byte(attack.template)
			o.Spec.Variables = attack.variables
		}))
		peak = w.peakAfter(t, process, attack.name, attack.reason)
		t.Logf("%s: at most %.0f MiB", attack.name, peak)
	}
	err := w.Edit(ctx, func(o *v1alpha1.BundleRollout) {
		o.Spec.Clusters = []v1alpha1.RolloutClusters{{Cluster: &v1alpha1.RolloutCluster{Name: "c1", Annotations: map[string]string{"big": strings.Repeat("x", 200_000)}}}}
	})
	if !apierrors.IsInvalid(err) {
		t.Errorf("an entry with an annotation of 200 kB: %v", err)
	}
	t.Logf("quiet %.0f MiB, at most %.0f MiB", quiet, peak)
	if peak-quiet > mostGrowth {
		t.Errorf("the peak is %.0f MiB, %.0f more than at rest", peak, peak-quiet)
	}
}

// peakAfter waits until the rollout is observed and, where a reason is given, not ready for that, has it decide some more times, and
// returns the peak memory of the process.
func (w *World) peakAfter(t *testing.T, p *Process, what, reason string) float64 {
	t.Helper()
	must1(w.Await(t.Context(), what+" "+reason, limit(1), func(o *v1alpha1.BundleRollout) bool {
		ready := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.ReadyCondition)
		return o.Status.ObservedGeneration == o.Generation && ready != nil && (reason == "" || ready.Reason == reason)
	}))(t)
	for i := range 10 {
		must(t, w.Edit(t.Context(), func(o *v1alpha1.BundleRollout) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, meta.ReconcileRequestAnnotation, fmt.Sprint(what, i))
		}))
		time.Sleep(time.Second) //nolint:forbidigo // it decides once in a second
	}
	return must1(p.PeakMiB())(t)
}

// storeSecrets creates Secrets that are clusters, each with a large annotation.
func (w *World) storeSecrets(t *testing.T, count, size int) {
	t.Helper()
	indexes := make([]int, count)
	for i := range indexes {
		indexes[i] = i
	}
	big := strings.Repeat("x", size)
	for _, err := range parallel.Each(t.Context(), atOnce, indexes, func(ctx context.Context, i int) error {
		return w.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: ClusterName(i), Labels: map[string]string{"fleet": "simulated"}, Annotations: map[string]string{"big": big},
		}})
	}) {
		must(t, err)
	}
}
