// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/process"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// patience bounds waiting for the controller; it is many times what it needs.
const patience = 2 * time.Minute

const namespace = "team"

// world is two clusters: the controller runs in one, and installs on the other.
type world struct {
	home, away   *controlplane.ControlPlane
	here, there  client.Client
	installation *installation.Deployments
	key          client.ObjectKey
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	w := &world{key: client.ObjectKey{Namespace: namespace, Name: "app"}}
	w.home = start(t, controlplane.Options{Reserve: 1, Nodes: -1})
	w.away = start(t, controlplane.Options{Beside: w.home, Nodes: -1})
	w.here, w.there = clientOf(t, w.home), clientOf(t, w.away)
	if err := installation.Install(t.Context(), w.home.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	var err error
	w.installation, err = installation.StartDeployments(t.Context(), w.home.RESTConfig(), t.TempDir(), 4, func(o *process.Options) {
		o.Egress.Allow, o.OwnCluster = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []client.Client{w.here, w.there} {
		w.must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		w.must(t, installation.Admin(t.Context(), c, namespace, "installer"))
	}
	return w
}

func start(t *testing.T, o controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	o.Progress = os.Stderr
	cp, err := controlplane.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	return cp
}

func clientOf(t *testing.T, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	c, err := installation.Client(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leadsTo puts a kubeconfig for a cluster into the Secret.
func (w *world) leadsTo(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	config, err := installation.AccountConfig(t.Context(), cp.RESTConfig(), namespace, "installer")
	w.must(t, err)
	text := fmt.Sprintf(`{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": %q, "certificate-authority-data": %q}}],
"users": [{"name": "a", "user": {"token": %q}}]}`, config.Host, encoded(t, config.CAData, config.CAFile), config.BearerToken)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod"}, Data: map[string][]byte{"value": []byte(text)}}
	if err := w.here.Create(t.Context(), secret.DeepCopy()); apierrors.IsAlreadyExists(err) {
		err = w.here.Update(t.Context(), secret)
		w.must(t, err)
	} else {
		w.must(t, err)
	}
}

func encoded(t *testing.T, data []byte, file string) string {
	t.Helper()
	if len(data) == 0 {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return base64.StdEncoding.EncodeToString(data)
}

func (w *world) deploy(t *testing.T) {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "app"}
	d.Spec.Interval, d.Spec.RetryInterval = v1alpha1.Duration{Duration: time.Second}, v1alpha1.Duration{Duration: time.Second}
	d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "prod"}}}
	w.must(t, w.here.Create(t.Context(), d))
}

// until waits until Ready has a reason and its message contains a text.
func (w *world) until(t *testing.T, reason, text string) *v1alpha1.BundleDeployment {
	t.Helper()
	var d v1alpha1.BundleDeployment
	w.eventually(t, reason+": "+text, func(ctx context.Context) (bool, string) {
		err := w.here.Get(ctx, w.key, &d)
		message := conditions.GetMessage(&d, meta.ReadyCondition)
		return err == nil && conditions.GetReason(&d, meta.ReadyCondition) == reason && strings.Contains(message, text), message
	})
	return &d
}

func (w *world) eventually(t *testing.T, what string, check func(context.Context) (bool, string)) {
	t.Helper()
	var seen string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (done bool, _ error) {
		done, seen = check(ctx)
		return done, nil
	})
	if err != nil {
		t.Fatalf("waited in vain: %s; last seen: %s", what, seen)
	}
}

// has waits until a cluster has, or has not, the ConfigMap.
func (w *world) has(t *testing.T, c client.Client, want bool) {
	t.Helper()
	w.eventually(t, fmt.Sprintf("the ConfigMap is there: %v", want), func(ctx context.Context) (bool, string) {
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "a"}, &corev1.ConfigMap{})
		return (err == nil) == want && client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
	})
}

// outages tells whether the API server of the other cluster is killed as well, which takes most of the time: in the release suite.
func outages() bool { return os.Getenv("SATCHEL_FULL") != "" }

func TestAnotherCluster(t *testing.T) {
	w := newWorld(t)
	files := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}
	_, err := w.installation.Publish(t.Context(), namespace, "app", "v1", files)
	w.must(t, err)
	w.leadsTo(t, w.away)
	w.deploy(t)
	d := w.until(t, v1alpha1.ReasonSucceeded, "all healthy")
	w.has(t, w.there, true)
	w.has(t, w.here, false)
	var system corev1.Namespace
	w.must(t, w.there.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system))
	if d.Status.Inventory.Target != string(system.UID) {
		t.Errorf("the target is %s, want %s", d.Status.Inventory.Target, system.UID)
	}

	// What was deleted is put back, also if the cluster went away and came back meanwhile.
	w.must(t, w.there.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}))
	if outages() {
		w.must(t, w.away.APIServer().Kill())
		w.until(t, v1alpha1.ReasonClusterUnreachable, "connection refused")
		w.must(t, w.away.APIServer().Start(t.Context()))
		w.until(t, v1alpha1.ReasonSucceeded, "all healthy")
	}
	w.has(t, w.there, true)

	// The kubeconfig leads elsewhere one day: nothing is touched in either cluster.
	w.leadsTo(t, w.home)
	if d := w.until(t, v1alpha1.ReasonTargetChanged, string(system.UID)); !conditions.IsTrue(d, meta.StalledCondition) {
		t.Errorf("not stalled: %v", d.Status.Conditions)
	}
	w.has(t, w.there, true)
	w.has(t, w.here, false)
	w.leadsTo(t, w.away)
	w.must(t, w.here.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`))))
	w.until(t, v1alpha1.ReasonSucceeded, "all healthy")

	// A removal waits for its cluster.
	if outages() {
		w.must(t, w.away.APIServer().Kill())
	}
	w.must(t, w.here.Delete(t.Context(), d))
	if outages() {
		w.until(t, v1alpha1.ReasonClusterUnreachable, "the annotation "+v1alpha1.AbandonAnnotation+"=now")
		w.must(t, w.away.APIServer().Start(t.Context()))
	}
	w.has(t, w.there, false)
	w.eventually(t, "the deployment is gone", func(ctx context.Context) (bool, string) {
		err := w.here.Get(ctx, w.key, d)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}
