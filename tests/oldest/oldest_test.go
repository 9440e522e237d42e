// SPDX-License-Identifier: Apache-2.0

package oldest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// oldest is the oldest supported minor version of Kubernetes: the fourth newest one.
const oldest = "1.33"

// patience bounds waiting for the controller; it is many times what it needs.
const patience = 2 * time.Minute

const namespace = "team"

// TestOldestIsDocumented: the pages and the chart state one version.
func TestOldestIsDocumented(t *testing.T) {
	for file, want := range map[string]string{
		"docs/installation.md":      "- Kubernetes " + oldest + " or newer",
		"docs/dev/releases.md":      "| Kubernetes | the four newest minor versions: " + oldest + " and newer",
		"charts/satchel/Chart.yaml": `kubeVersion: ">=` + oldest + `.0-0"`,
	} {
		text, err := os.ReadFile(filepath.Join(installation.Root(), file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q (%v)", file, want, err)
		}
	}
}

// world is a cluster of the oldest version with the deployment controller.
type world struct {
	client       client.Client
	installation *installation.Deployments
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Nodes: -1, APIServerArgs: []string{"--emulated-version=" + oldest}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	discovered, err := discovery.NewDiscoveryClientForConfig(cp.RESTConfig())
	must(t, err)
	version, err := discovered.ServerVersion()
	must(t, err)
	if got := version.EmulationMajor + "." + version.EmulationMinor; got != oldest {
		t.Fatalf("the API server emulates %s, want %s", got, oldest)
	}
	w := &world{}
	w.client, err = installation.Client(cp.RESTConfig())
	must(t, err)
	must(t, installation.Install(t.Context(), cp.RESTConfig()))
	must(t, installation.InstallRollouts(t.Context(), cp.RESTConfig()))
	w.installation, err = installation.StartDeployments(t.Context(), cp.RESTConfig(), t.TempDir(), 2)
	must(t, err)
	must(t, w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(t, installation.Admin(t.Context(), w.client, namespace, "installer"))
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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

// ready waits until a deployment is Ready with a revision.
func (w *world) ready(t *testing.T, d *v1alpha1.BundleDeployment, revision string) {
	t.Helper()
	w.eventually(t, "Ready with "+revision, func(ctx context.Context) (bool, string) {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(d), d)
		return err == nil && conditions.IsTrue(d, meta.ReadyCondition) && d.Status.Applied.Revision == revision, fmt.Sprint(err, d.Status.Conditions)
	})
}

// value waits until the ConfigMap of the bundle has a value.
func (w *world) value(t *testing.T, want string) {
	t.Helper()
	w.eventually(t, "the value "+want, func(ctx context.Context) (bool, string) {
		var found corev1.ConfigMap
		err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "a"}, &found)
		return err == nil && found.Data["k"] == want, fmt.Sprint(err, found.Data)
	})
}

// TestOldestKubernetes installs, upgrades, corrects drift and removes, with the CRDs and admission policies of the installation.
func TestOldestKubernetes(t *testing.T) {
	w := newWorld(t)
	bundle := func(value string) fstest.MapFS {
		return fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: " + value + "}\n---\n" +
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 0, selector: {matchLabels: {a: a}}, template: {metadata: {labels: {a: a}}, spec: {containers: [{name: a, image: " + value + "}]}}}\n")}}
	}
	first, err := w.installation.Publish(t.Context(), namespace, "app", "v1", bundle("one"))
	must(t, err)
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "app"}
	must(t, w.client.Create(t.Context(), d))
	w.ready(t, d, first.Revision)
	second, err := w.installation.Publish(t.Context(), namespace, "app", "v2", bundle("two"))
	must(t, err)
	w.ready(t, d, second.Revision)
	w.value(t, "two")

	edited := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	must(t, w.client.Patch(t.Context(), edited, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"k":"edited"}}`))))
	w.value(t, "two")

	must(t, w.client.Delete(t.Context(), d))
	w.eventually(t, "everything is removed", func(ctx context.Context) (bool, string) {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(edited), edited)
		gone := w.client.Get(ctx, client.ObjectKeyFromObject(d), d)
		return apierrors.IsNotFound(err) && apierrors.IsNotFound(gone), fmt.Sprint(err, gone)
	})
}
