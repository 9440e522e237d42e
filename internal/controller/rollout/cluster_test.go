// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/rollout"
	"github.com/satchel-dev/satchel/internal/controller/rollout/children"
	"github.com/satchel-dev/satchel/internal/controller/rollout/fleet"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/tests/installation"
)

// installed runs the rollout controller and the deployment controller on namespaces as clusters. A publisher takes the place of the
// source controller.
type installed struct {
	*rig
	published *installation.Deployments
	version   atomic.Value
}

func install(t *testing.T) *installed {
	i := &installed{rig: prepareRig(t)} // not in parallel: the deployment controller would report on the BundleDeployments of other tests
	config := shared.adminConfig
	var err error
	if i.published, err = installation.StartDeployments(t.Context(), config, t.TempDir(), 8); err != nil {
		t.Fatal(err)
	}
	if err := installation.Account(t.Context(), shared.admin, i.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(shared.config, rollout.FieldManager, manager.Options{MetricsAddr: "0", HealthAddr: "0", Namespace: installation.Namespace, Trim: children.Trim})
	if err != nil {
		t.Fatal(err)
	}
	tenants, err := tenant.NewPool(shared.config, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := rollout.NewReconciler(rollout.Deps{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(rollout.FieldManager), Clusters: fleet.Lister{Tenants: tenants},
	})
	if err := reconciler.SetupWithManager(mgr, 4); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the rollout controller ended: %v", err)
		}
	}()
	return i
}

func bundle(version string) fs.FS {
	return fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {version: " + version + "}\n")}}
}

// publishAll publishes the present version as the sources that have no artifact yet, which are the pinned ones.
func (i *installed) publishAll(ctx context.Context) error {
	var sources v1alpha1.BundleSourceList
	if err := shared.admin.List(ctx, &sources, client.InNamespace(i.namespace)); err != nil {
		return err
	}
	for _, source := range sources.Items {
		if version, _ := i.version.Load().(string); source.Status.Artifact == nil {
			if _, err := i.published.Publish(ctx, i.namespace, source.Name, version, bundle(version)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *installed) wait(what string, holds func(ctx context.Context) bool) {
	i.t.Helper()
	err := wait.PollUntilContextTimeout(i.t.Context(), 30*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		return holds(ctx), i.publishAll(ctx)
	})
	if err != nil {
		i.t.Fatalf("waited in vain: %s: %v\n%+v", what, err, i.get().Status)
	}
}

// content is what a cluster runs; "" for nothing.
func (i *installed) content(ctx context.Context, on string) string {
	var found corev1.ConfigMap
	_ = shared.admin.Get(ctx, client.ObjectKey{Namespace: i.namespace + "-" + on, Name: "a"}, &found)
	return found.Data["version"]
}

// TestR21InClusters rolls a bundle out to six clusters, and wants drift in a cluster of the last wave corrected at its own revision while
// the first wave soaks with the next one.
func TestR21InClusters(t *testing.T) {
	i := install(t)
	i.next("v1")
	i.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Template.Spec.Raw = []byte(fmt.Sprintf(`{"serviceAccountName":"deployer","target":{"namespace":"%s-$(cluster)","createNamespace":true}}`, i.namespace))
		spec.Strategy.Waves[0].Soak = v1alpha1.Duration{Duration: time.Second}
	})
	i.wait("v1 complete", func(context.Context) bool { return why(i.get()) == v1alpha1.ReasonComplete })
	if order := i.starts(); !slices.IsSorted(order) || len(order) != 6 {
		t.Errorf("order of starts: %v", order)
	}
	i.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Strategy.Waves[0].Soak = v1alpha1.Duration{Duration: time.Hour}
	})
	i.next("v2")
	i.wait("the first wave soaks with v2", func(ctx context.Context) bool {
		return why(i.get()) == v1alpha1.ReasonSoaking && i.content(ctx, "c1") == "v2"
	})
	drifted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace + "-c6", Name: "a"}}
	if err := shared.admin.Patch(t.Context(), drifted, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"version":"drifted"}}`))); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	i.wait("drift is corrected", func(ctx context.Context) bool { return i.content(ctx, "c6") == "v1" })
	t.Logf("drift was corrected after %s", time.Since(began))
	if object := i.get(); why(object) != v1alpha1.ReasonSoaking || condition(object, "Ready") != "True Soaking" {
		t.Errorf("the rollout is %s, Ready %s", why(object), condition(object, "Ready"))
	}
	i.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Strategy.Waves[0].Soak = v1alpha1.Duration{Duration: time.Second}
	})
	i.wait("v2 complete", func(ctx context.Context) bool {
		return why(i.get()) == v1alpha1.ReasonComplete && i.content(ctx, "c6") == "v2"
	})
	for w, wave := range i.get().Status.Waves[:3] {
		if next := i.get().Status.Waves[w+1]; w < 2 && next.StartTime.Before(wave.CompletionTime) {
			t.Errorf("wave %s began before wave %s was complete", next.Name, wave.Name)
		}
	}
}

// next publishes the next version.
func (i *installed) next(version string) {
	i.t.Helper()
	i.version.Store(version)
	if _, err := i.published.Publish(i.t.Context(), i.namespace, "bundle", version, bundle(version)); err != nil {
		i.t.Fatal(err)
	}
}
