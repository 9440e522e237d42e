// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// Namespace is where the rollout, its source and the kubeconfigs are.
const Namespace = "fleet"

// Rollout is the name of the rollout and of its source.
const Rollout = "shop"

// Options say what to simulate.
type Options struct {
	// Clusters is how many there are. Ring is the label ring of each.
	Clusters int
	Ring     func(index int) string
	// Beside is how many further control planes will run beside the hub.
	Beside int
	// Dir is for files of the simulation, and Bin has the controllers.
	Dir, Bin string
	// Without leaves out a controller; "": all three run.
	Without string
	// Args are further flags of each controller.
	Args []string
	// Progress is told how the control plane starts; nil: nothing is told.
	Progress io.Writer
}

// World is a hub with its controllers, and the simulated clusters.
type World struct {
	ControlPlane *controlplane.ControlPlane
	Client       client.Client
	Proxy        *Proxy
	Clusters     []*Cluster
	// Controllers are the source controller, the deployment controller and the rollout controller, without the one that is left out.
	Controllers []*Process
}

// atOnce is how many objects are created at once.
const atOnce = 16

// Start starts a control plane, the controllers and the clusters. Close ends them, also after an error.
func Start(ctx context.Context, o Options) (*World, error) {
	w := &World{}
	cp, err := controlplane.Start(ctx, controlplane.Options{Nodes: -1, Reserve: o.Beside, Progress: o.Progress})
	if err != nil {
		return w, err
	}
	w.ControlPlane = cp
	admin := cp.RESTConfig()
	admin.QPS, admin.Burst = -1, -1
	if err := installation.Install(ctx, admin); err != nil {
		return w, err
	}
	if err := installation.InstallRollouts(ctx, admin); err != nil {
		return w, err
	}
	if w.Client, err = installation.Client(admin); err != nil {
		return w, err
	}
	if w.Proxy, err = NewProxy(admin); err != nil {
		return w, err
	}
	if err := w.join(ctx, admin, o); err != nil {
		return w, err
	}
	return w, w.startControllers(ctx, admin, o)
}

// Close ends everything.
func (w *World) Close() error {
	for _, p := range w.Controllers {
		p.stop()
	}
	if w.Proxy != nil {
		w.Proxy.Close()
	}
	if w.ControlPlane == nil {
		return nil
	}
	return w.ControlPlane.Stop()
}

// ClusterName is the name of a cluster by its index, from 0.
func ClusterName(index int) string { return fmt.Sprintf("c-%03d", index+1) }

// join creates the accounts, and for each cluster its namespace and the Secret with its kubeconfig.
func (w *World) join(ctx context.Context, admin *rest.Config, o Options) error {
	if err := w.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		return fmt.Errorf("creating the namespace %s: %w", Namespace, err)
	}
	// The account of the clusters may do everything there; that of the hub may read the kubeconfigs.
	if err := installation.Admin(ctx, w.Client, Namespace, "member"); err != nil {
		return err
	}
	if err := installation.Account(ctx, w.Client, Namespace, "deployer", "admin", Namespace); err != nil {
		return err
	}
	member, err := installation.AccountConfig(ctx, admin, Namespace, "member")
	if err != nil {
		return err
	}
	for i := range o.Clusters {
		w.Clusters = append(w.Clusters, w.Proxy.Add(ClusterName(i)))
	}
	indexes := make([]int, o.Clusters)
	for i := range indexes {
		indexes[i] = i
	}
	return errors.Join(parallel.Each(ctx, atOnce, indexes, func(ctx context.Context, i int) error {
		name := ClusterName(i)
		if err := w.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("creating the namespace %s: %w", name, err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{"fleet": "simulated", "ring": o.Ring(i)}},
			Data:       map[string][]byte{"value": w.Proxy.Kubeconfig(name, member.BearerToken)},
		}
		if err := w.Client.Create(ctx, secret); err != nil {
			return fmt.Errorf("creating the kubeconfig of %s: %w", name, err)
		}
		return nil
	})...)
}

// startControllers starts the three controllers.
func (w *World) startControllers(ctx context.Context, admin *rest.Config, o Options) error {
	artifacts, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	uploads, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	storage, cache := filepath.Join(o.Dir, "artifacts"), filepath.Join(o.Dir, "cache")
	for _, folder := range []string{storage, cache} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("creating a folder for a controller: %w", err)
		}
	}
	for _, one := range []struct {
		name string
		args []string
	}{
		{"bundle-source-controller", []string{"--storage-path", storage, "--storage-addr", artifacts, "--storage-adv-addr", artifacts, "--upload-addr", uploads}},
		{"bundle-deployment-controller", []string{
			"--cache-path", cache, "--artifact-servers", "http://" + artifacts, "--egress-allow", "127.0.0.1/32", "--watch-limit", "20000",
		}},
		{"bundle-rollout-controller", nil},
	} {
		if one.name == o.Without {
			continue
		}
		p, err := startProcess(ctx, admin, o.Dir, o.Bin, one.name, slices.Concat(one.args, o.Args)...)
		if err != nil {
			return err
		}
		w.Controllers = append(w.Controllers, p)
	}
	return nil
}

// objectsOfBundle is how many objects the bundle has.
const objectsOfBundle = 4

// Publish makes a version the content of the source: ConfigMaps that name it, and further manifests.
func (w *World) Publish(ctx context.Context, version string, further ...string) error {
	var files strings.Builder
	for i := range objectsOfBundle {
		fmt.Fprintf(&files, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop-%d}\ndata: {version: %q}\n", i, version)
	}
	for _, manifest := range further {
		fmt.Fprintf(&files, "---\n%s\n", manifest)
	}
	bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Rollout}, Data: map[string]string{"shop.yaml": files.String()}}
	if err := w.upsert(ctx, bundle); err != nil {
		return err
	}
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: Rollout, Annotations: map[string]string{meta.ReconcileRequestAnnotation: version},
	}}
	source.Spec.Sources = []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: Rollout}}}
	return w.upsert(ctx, source)
}

// upsert creates an object, or replaces it.
func (w *World) upsert(ctx context.Context, o client.Object) error {
	desired, isObject := o.DeepCopyObject().(client.Object)
	if !isObject {
		return errors.New("a copy of an object is none")
	}
	err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		return w.Client.Create(ctx, desired)
	}
	desired.SetResourceVersion(o.GetResourceVersion())
	return w.Client.Update(ctx, desired)
}

// Create creates the rollout with a strategy, after some changes.
func (w *World) Create(ctx context.Context, strategy v1alpha1.RolloutStrategy, changes ...func(*v1alpha1.BundleRolloutSpec)) error {
	template, err := json.Marshal(map[string]any{
		"serviceAccountName": "deployer", "target": map[string]any{"namespace": "$(cluster)"}, "health": map[string]any{"timeout": "5s"}, "retryInterval": "5s", "interval": "1h",
	})
	if err != nil {
		return err
	}
	object := &v1alpha1.BundleRollout{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Rollout}}
	object.Spec = v1alpha1.BundleRolloutSpec{
		SourceRef: v1alpha1.RolloutSourceReference{Name: Rollout},
		Clusters: []v1alpha1.RolloutClusters{{KubeConfigSecrets: &v1alpha1.KubeConfigSecretClusters{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "simulated"}},
		}}},
		Template: v1alpha1.RolloutTemplate{Spec: apiextensionsv1.JSON{Raw: template}},
		Strategy: strategy, DeletionPolicy: v1alpha1.DeletionOrphan,
	}
	for _, change := range changes {
		change(&object.Spec)
	}
	if err := w.Client.Create(ctx, object); err != nil {
		return fmt.Errorf("creating the BundleRollout %s/%s: %w", Namespace, Rollout, err)
	}
	return nil
}

// Wave is a wave of the clusters with a ring.
func Wave(ring string, change func(*v1alpha1.RolloutWave)) v1alpha1.RolloutWave {
	one := v1alpha1.RolloutWave{Name: ring, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}}}
	if change != nil {
		change(&one)
	}
	return one
}

// Get reads the rollout.
func (w *World) Get(ctx context.Context) (*v1alpha1.BundleRollout, error) {
	object := new(v1alpha1.BundleRollout)
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Rollout}, object)
	return object, err
}

// Edit changes the rollout.
func (w *World) Edit(ctx context.Context, change func(*v1alpha1.BundleRollout)) error {
	object, err := w.Get(ctx)
	if err != nil {
		return err
	}
	before := object.DeepCopy()
	change(object)
	return w.Client.Patch(ctx, object, client.MergeFrom(before))
}

// Await waits until the rollout is as wanted, for a time. The error says what was seen last.
func (w *World) Await(ctx context.Context, what string, limit time.Duration, wanted func(*v1alpha1.BundleRollout) bool) (*v1alpha1.BundleRollout, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	const pause = 200 * time.Millisecond
	last := "it was never read"
	for {
		object, err := w.Get(ctx)
		switch {
		case err == nil && wanted(object):
			return object, nil
		case err == nil:
			last = Reason(object) + " " + object.Status.Progress + " " + object.Status.Wave
			for _, c := range object.Status.Conditions {
				last += fmt.Sprintf("; %s=%s %s", c.Type, c.Status, c.Message)
			}
		}
		select {
		case <-ctx.Done():
			return object, fmt.Errorf("waiting for %s: not within %s; last seen: %s", what, limit, last)
		case <-time.After(pause):
		}
	}
}

// Reason is that of the condition RolledOut.
func Reason(o *v1alpha1.BundleRollout) string {
	for _, c := range o.Status.Conditions {
		if c.Type == v1alpha1.RolledOutCondition && o.Status.ObservedGeneration == o.Generation {
			return c.Reason
		}
	}
	return ""
}

// VersionOn is the version that is installed on a cluster.
func (w *World) VersionOn(ctx context.Context, cluster string) (string, error) {
	var found corev1.ConfigMap
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "shop-0"}, &found)
	return found.Data["version"], err
}
