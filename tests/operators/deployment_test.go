// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// installer is the ServiceAccount that installs, in the namespace of the deployment.
const installer = "installer"

// deployment is one bundle being installed.
type deployment struct {
	*rig
	bundle
	namespace string
	asked     int // reconciles that were asked for
}

func (d *deployment) key() client.ObjectKey {
	return client.ObjectKey{Namespace: d.namespace, Name: d.name}
}

// object is the deployment as a user writes it.
func (d *deployment) object() *v1alpha1.BundleDeployment {
	o := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: d.name}}
	o.Spec.ServiceAccountName = installer
	o.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: d.name}
	d.configure(o)
	return o
}

// publish makes files the revision that the deployment's source advertises, and returns its name.
func (d *deployment) publish(t *testing.T, tag string, files fs.FS) string {
	t.Helper()
	published, err := d.Publish(t.Context(), d.namespace, d.name, tag, files)
	if err != nil {
		t.Fatal(err)
	}
	return published.Revision
}

func (d *deployment) create(t *testing.T) {
	t.Helper()
	if err := d.admin.Create(t.Context(), d.object()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.remove(context.WithoutCancel(t.Context()), t) })
}

// reconcile asks for another attempt, as `satchel reconcile` does.
func (d *deployment) reconcile(t *testing.T) {
	t.Helper()
	d.asked++
	patch := `{"metadata":{"annotations":{"` + meta.ReconcileRequestAnnotation + `":"` + strconv.Itoa(d.asked) + `"}}}`
	if err := d.admin.Patch(t.Context(), d.object(), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// until waits until a status that answers the latest request has a property.
func (d *deployment) until(t *testing.T, what string, holds func(*v1alpha1.BundleDeployment) bool) *v1alpha1.BundleDeployment {
	t.Helper()
	var live v1alpha1.BundleDeployment
	seen, held := poll(t.Context(), func(ctx context.Context) (bool, string) {
		live = v1alpha1.BundleDeployment{}
		if err := d.admin.Get(ctx, d.key(), &live); err != nil {
			return false, err.Error()
		}
		answered := d.asked == 0 || live.Status.LastHandledReconcileAt == strconv.Itoa(d.asked)
		return answered && live.Status.ObservedGeneration == live.Generation && holds(&live), describe(&live)
	})
	if !held {
		t.Fatalf("waited in vain: %s; last seen:\n%s%s", what, seen, d.events(t.Context()))
	}
	return &live
}

// ready waits until a revision is applied and healthy.
func (d *deployment) ready(t *testing.T, revision string) *v1alpha1.BundleDeployment {
	t.Helper()
	return d.until(t, "Ready at "+revision, func(live *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(live, meta.ReadyCondition) && live.Status.Healthy.Revision == revision
	})
}

// refused waits until the plan is refused, and returns why.
func (d *deployment) refused(t *testing.T) string {
	t.Helper()
	live := d.until(t, "the plan is refused", func(live *v1alpha1.BundleDeployment) bool {
		return conditions.IsFalse(live, v1alpha1.PlannedCondition)
	})
	return conditions.GetMessage(live, v1alpha1.PlannedCondition)
}

// remove deletes the deployment, waits until it is gone, and returns how long that took.
func (d *deployment) remove(ctx context.Context, t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	if err := client.IgnoreNotFound(d.admin.Delete(ctx, d.object())); err != nil {
		t.Fatal(err)
	}
	d.eventually(t, ctx, "the deployment is gone", func(ctx context.Context) (bool, string) {
		var live v1alpha1.BundleDeployment
		err := d.admin.Get(ctx, d.key(), &live)
		return apierrors.IsNotFound(err), describe(&live)
	})
	return time.Since(start)
}

// events is what happened in the namespace, for failures.
func (d *deployment) events(ctx context.Context) string {
	var events corev1.EventList
	var pods corev1.PodList
	if err := errors.Join(d.admin.List(ctx, &events, client.InNamespace(d.namespace)), d.admin.List(ctx, &pods, client.InNamespace(d.namespace))); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, e := range events.Items {
		fmt.Fprintf(&text, "  %s %s: %s: %.300s\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	for i := range pods.Items {
		fmt.Fprintf(&text, "  Pod %s: %s, %d conditions\n", pods.Items[i].Name, pods.Items[i].Status.Phase, len(pods.Items[i].Status.Conditions))
	}
	return text.String()
}
