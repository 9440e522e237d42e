// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// member is a real cluster of the fleet: the bundle is in the namespace that has its name.
type member struct {
	*controlplane.ControlPlane
	name   string
	client client.Client
}

// joinReal makes a control plane a cluster of the fleet, in the wave of its name.
func (w *World) joinReal(t *testing.T, cp *controlplane.ControlPlane, name string) *member {
	t.Helper()
	ctx := t.Context()
	c := &member{ControlPlane: cp, name: name, client: must1(installation.Client(cp.RESTConfig()))(t)}
	must(t, c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	must(t, installation.Admin(ctx, c.client, name, "member"))
	account := must1(installation.AccountConfig(ctx, cp.RESTConfig(), name, "member"))(t)
	kubeconfig := must1(kubeconfigOf(account))(t)
	if cp == w.ControlPlane { // the deployment controller refuses the address of its own API server
		w.Proxy.Add(name)
		kubeconfig = w.Proxy.Kubeconfig(name, account.BearerToken)
	}
	must(t, w.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{"fleet": "simulated", "ring": name}},
		Data:       map[string][]byte{"value": kubeconfig},
	}))
	return c
}

// kubeconfigOf is a kubeconfig with the token of an account.
func kubeconfigOf(config *rest.Config) ([]byte, error) {
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the certificate of the API server's authority: %w", err)
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	return clientcmd.Write(*file)
}

// has wants a version on the cluster.
func (c *member) has(t *testing.T, want string) {
	t.Helper()
	var found corev1.ConfigMap
	err := c.client.Get(t.Context(), client.ObjectKey{Namespace: c.name, Name: "shop-0"}, &found)
	if got := found.Data["version"]; err != nil || got != want {
		t.Errorf("the cluster %s has version %q (%v), want %s", c.name, got, err, want)
	}
}

// TestR30RealClusters rolls out on two control planes, from the hub: the first wave is the hub itself, behind a proxy, and the second is prod. The rollout controller is killed
// between the waves; the API server of prod is away for two revisions, and prod gets the newest one; a revision that fails on prod is taken back on both.
func TestR30RealClusters(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("starts two control planes: for the release suite, SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	ctx := t.Context()
	w := startWorld(t, Options{Beside: 1, Args: []string{
		"--leader-election-lease-duration", "10s", "--leader-election-renew-deadline", "8s", "--leader-election-retry-period", "1s",
	}})
	second := must1(controlplane.Start(ctx, controlplane.Options{Beside: w.ControlPlane, Nodes: -1, Progress: os.Stderr}))(t)
	t.Cleanup(func() { _ = second.Stop() })
	canary, prod := w.joinReal(t, w.ControlPlane, "canary"), w.joinReal(t, second, "prod")
	must(t, w.Publish(ctx, "v1"))
	soak := func(wave *v1alpha1.RolloutWave) { wave.Soak = v1alpha1.Duration{Duration: 3 * time.Second} }
	must(t, w.Create(ctx, v1alpha1.RolloutStrategy{
		Waves: []v1alpha1.RolloutWave{Wave("canary", soak), Wave("prod", nil)}, OnFailure: v1alpha1.RolloutRollback,
		MinReady: v1alpha1.Duration{Duration: time.Second}, ProgressDeadline: v1alpha1.Duration{Duration: time.Minute},
		Unreachable: v1alpha1.UnreachableClusters{Policy: v1alpha1.UnreachableSkip, After: v1alpha1.Duration{Duration: 5 * time.Second}},
	}))
	await := func(what string, wanted func(*v1alpha1.BundleRollout) bool) *v1alpha1.BundleRollout {
		t.Helper()
		began := time.Now()
		object := must1(w.Await(ctx, what, limit(2), wanted))(t)
		t.Logf("%s: after %s", what, time.Since(began).Round(100*time.Millisecond))
		return object
	}
	await("v1 is installed", completeWith(1))
	canary.has(t, "v1")
	prod.has(t, "v1")

	must(t, w.Publish(ctx, "v2"))
	await("the canary soaks", func(o *v1alpha1.BundleRollout) bool { return o.Status.Run == 2 && Reason(o) == v1alpha1.ReasonSoaking })
	must(t, w.process(t, "bundle-rollout-controller").Kill(ctx))
	prod.has(t, "v1")
	await("v2 is installed, after the rollout controller was killed in mid-wave", completeWith(2))
	prod.has(t, "v2")

	must(t, prod.APIServer().Kill())
	must(t, w.Publish(ctx, "v3"))
	withoutProd := func(run int64) func(*v1alpha1.BundleRollout) bool {
		return func(o *v1alpha1.BundleRollout) bool {
			return o.Status.Run == run && Reason(o) == v1alpha1.ReasonNoClusterReachable && o.Status.Clusters.Unreachable == 1
		}
	}
	await("v3 waits for prod", withoutProd(3))
	canary.has(t, "v3")
	must(t, w.Publish(ctx, "v4"))
	await("v4 waits for prod", withoutProd(4))
	canary.has(t, "v4")
	must(t, prod.APIServer().Start(ctx))
	await("prod is back", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Updated == 2 })
	prod.has(t, "v4")

	// Another owner's ConfigMap on prod makes the plan for v5 a conflict there.
	const extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}"
	must(t, prod.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: prod.name, Name: "extra"}}))
	must(t, w.Publish(ctx, "v5", extra))
	await("v5 is taken back", func(o *v1alpha1.BundleRollout) bool {
		return o.Status.RejectedRevision != "" && Reason(o) == v1alpha1.ReasonRevisionRejected
	})
	canary.has(t, "v4")
	prod.has(t, "v4")
	if err := canary.client.Get(ctx, client.ObjectKey{Namespace: canary.name, Name: "extra"}, new(corev1.ConfigMap)); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("what v5 added is still on the canary (%v)", err)
	}
}

// process is a controller.
func (w *World) process(t *testing.T, name string) *Process {
	t.Helper()
	for _, p := range w.Controllers {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no %s runs", name)
	return nil
}
