// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/tests/installation"
)

// TestR31RebuiltCluster rebuilds a cluster of Cluster API under the same name, with all controllers: nothing is installed on it while it is held, and
// with Abandon its BundleDeployment is replaced and the bundle installed.
func TestR31RebuiltCluster(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("takes a minute: for the release suite, SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	const n = 3
	ctx := t.Context()
	w := startWorld(t, Options{Clusters: n})
	must(t, installation.Account(ctx, w.Client, Namespace, "deployer", "cluster-admin", ""))
	must(t, installation.InstallKind(ctx, w.Client, filepath.Join(installation.Root(), "internal/controller/rollout/testdata/clusters.cluster.x-k8s.io.yaml")))
	for i := range n {
		w.adopt(t, ClusterName(i), rings(n)(i))
	}
	must(t, w.Publish(ctx, "v1"))
	must(t, w.Create(ctx, strategyOf(n), func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{{ClusterAPI: &v1alpha1.ClusterAPIClusters{}}}
	}))
	must1(w.Await(ctx, "the installation", limit(n), completeWith(1)))(t)

	last := w.Clusters[n-1]
	key := client.ObjectKey{Namespace: Namespace, Name: revision.ChildName(Rollout, last.Name)}
	var before, after v1alpha1.BundleDeployment
	must(t, w.Client.Get(ctx, key, &before))
	last.Break(Fault{Refuses: true})
	must(t, w.Client.DeleteAllOf(ctx, new(corev1.ConfigMap), client.InNamespace(last.Name)))
	must(t, w.Client.Delete(ctx, clusterObject(last.Name, "")))
	w.adopt(t, last.Name, rings(n)(n-1))
	last.Rebuild()
	last.Break(Fault{})
	must(t, w.Publish(ctx, "v2"))
	held := must1(w.Await(ctx, "the cluster to be held", limit(n), func(o *v1alpha1.BundleRollout) bool {
		return Reason(o) == v1alpha1.ReasonHeld && len(o.Status.Worst) == 1
	}))(t)
	if worst := held.Status.Worst[0]; worst.Cluster != last.Name || !strings.Contains(worst.Message, "whenClusterGone") {
		t.Errorf("status.worst: %+v", worst)
	}
	if version, err := w.VersionOn(ctx, last.Name); err == nil {
		t.Errorf("%s was installed on the rebuilt cluster while it was held", version)
	}
	must(t, w.Edit(ctx, func(o *v1alpha1.BundleRollout) { o.Spec.Removal.WhenClusterGone = v1alpha1.GoneClusterAbandon }))
	must1(w.Await(ctx, "the cluster to be replaced", limit(n), completeWith(2)))(t)
	must(t, w.Client.Get(ctx, key, &after))
	if version, err := w.VersionOn(ctx, last.Name); err != nil || version != "v2" || after.UID == before.UID {
		t.Errorf("the rebuilt cluster has %s (%v), want v2 by another BundleDeployment", version, err)
	}
}

func clusterObject(name, ring string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "spec": map[string]any{}}}
	object.SetNamespace(Namespace)
	object.SetName(name)
	object.SetLabels(map[string]string{"ring": ring})
	return object
}

// adopt creates the Cluster of Cluster API for a simulated cluster, and its kubeconfig, with other content each time.
func (w *World) adopt(t *testing.T, name, ring string) {
	t.Helper()
	object := clusterObject(name, ring)
	must(t, w.Client.Create(t.Context(), object))
	var simulated corev1.Secret
	must(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, &simulated))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name + "-kubeconfig"}, Data: map[string][]byte{
		"value": fmt.Appendf(nil, "%s\n# %s\n", simulated.Data["value"], object.GetUID()),
	}}
	must(t, w.upsert(t.Context(), secret))
}
