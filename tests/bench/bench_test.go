// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
)

// row is one line of a table.
type row struct {
	what     string
	took     time.Duration
	requests requests
}

func printTable(t testing.TB, title string, rows []row) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", title)
	for _, r := range rows {
		fmt.Fprintf(&text, "  %-46s %8.2f s\n", r.what, r.took.Seconds())
		for _, verb := range slices.Sorted(maps.Keys(r.requests.byVerb)) {
			fmt.Fprintf(&text, "      %6d  %s\n", r.requests.byVerb[verb], verb)
		}
	}
	t.Log(text.String())
}

// objectsOf reads manifests for a namespace.
func objectsOf(t testing.TB, namespace string, files fstest.MapFS) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(files[name].Data, &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace(namespace)
		objects = append(objects, o)
	}
	return objects
}

// measureOne installs one deployment of n ConfigMaps beside a bare loop, and then
// has everything compared once more although nothing changed.
func measureOne(t testing.TB, r *rig, n int) (bare, install, rest row) {
	t.Helper()
	files := fstest.MapFS{}
	for i := range n {
		name := fmt.Sprintf("c%05d", i)
		files[name+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %q, b: %q}\n", name, strings.Repeat("x", 100), name)}
	}
	bare = row{what: fmt.Sprintf("bare loop, %d at once", atOnce)}
	bare.took = r.bare(t, objectsOf(t, r.namespace(t), files))

	namespace := r.namespace(t)
	if _, err := r.Publish(t.Context(), namespace, "app", "v1", files); err != nil {
		t.Fatal(err)
	}
	mark, began := r.mark(t), time.Now()
	if err := r.deploy(t.Context(), namespace, "app"); err != nil {
		t.Fatal(err)
	}
	r.waitAll(t, namespace, 1, isReady)
	install = row{what: "BundleDeployment, from create to Ready", took: time.Since(began), requests: r.requests(t, mark)}

	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
	mark, began = r.mark(t), time.Now()
	patch := `{"metadata":{"annotations":{"` + meta.ReconcileRequestAnnotation + `":"again"}}}`
	if err := r.admin.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	r.waitAll(t, namespace, 1, func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.LastHandledReconcileAt == "again" && isReady(d)
	})
	rest = row{what: "second full reconcile, nothing changed", took: time.Since(began), requests: r.requests(t, mark)}
	r.clear(t, namespace)
	return bare, install, rest
}

// checkCosts holds the cost model: about one write an object at first, nothing an
// object when nothing changed.
func checkCosts(t testing.TB, n int, bare, install, rest row) {
	t.Helper()
	if install.requests.objects > n+n/10 {
		t.Errorf("%d requests for single objects on install, want about %d", install.requests.objects, n)
	}
	if rest.requests.objects != 0 {
		t.Errorf("%d requests for single objects when nothing changed, want 0: %v", rest.requests.objects, rest.requests.byVerb)
	}
	if limit := 6*3*bare.took/2 + 5*time.Second; install.took > limit {
		t.Errorf("install took %s, want at most 1.5 times the bare loop's %s, and never six times that", install.took, bare.took)
	}
}

// TestHundredConfigMaps is the scaled-down run that belongs to every test run.
func TestHundredConfigMaps(t *testing.T) {
	r := newRig(t)
	bare, install, rest := measureOne(t, r, 100)
	printTable(t, "100 ConfigMaps in one deployment", []row{bare, install, rest})
	checkCosts(t, 100, bare, install, rest)
}

// BenchmarkThousandConfigMaps is one deployment of 1,000 ConfigMaps.
func BenchmarkThousandConfigMaps(b *testing.B) {
	r := newRig(b)
	for range b.N {
		bare, install, rest := measureOne(b, r, 1000)
		printTable(b, "1,000 ConfigMaps in one deployment", []row{bare, install, rest})
		checkCosts(b, 1000, bare, install, rest)
		b.ReportMetric(install.took.Seconds()/bare.took.Seconds(), "x-bare")
		b.ReportMetric(rest.took.Seconds(), "s-again")
	}
}

// service is a bundle of a small service: account, Service, ConfigMap, Deployment.
func service(name string) fstest.MapFS {
	manifest := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "NAME", name))}
	}
	return fstest.MapFS{
		name + "-1.yaml": manifest("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME}\n"),
		name + "-2.yaml": manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {a: b}\n"),
		name + "-3.yaml": manifest("apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {selector: {app: NAME}, ports: [{port: 80}]}\n"),
		name + "-4.yaml": manifest(`apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {serviceAccountName: NAME, containers: [{name: main, image: "example.org/main:1"}]}
`),
	}
}

// BenchmarkHundredDeployments is 100 deployments of four objects at once, until
// all are Ready, beside a bare loop until all Deployments are Available.
func BenchmarkHundredDeployments(b *testing.B) {
	r := newRig(b)
	const count = 100
	for range b.N {
		bare := row{what: "bare loop, until all are Available", took: bareServices(b, r, count)}
		namespace := r.namespace(b)
		names := make([]string, 0, count)
		for i := range count {
			names = append(names, fmt.Sprintf("s%03d", i))
		}
		each(b, names, func(ctx context.Context, name string) error {
			_, err := r.Publish(ctx, namespace, name, "v1", service(name))
			return err
		})
		mark, began := r.mark(b), time.Now()
		each(b, names, func(ctx context.Context, name string) error { return r.deploy(ctx, namespace, name) })
		r.waitAll(b, namespace, count, isReady)
		install := row{what: "100 BundleDeployments, until all are Ready", took: time.Since(began), requests: r.requests(b, mark)}
		printTable(b, "100 deployments of four objects, created at once", []row{bare, install})
		if install.took > 6*5*bare.took/2 {
			b.Errorf("took %s, want at most 2.5 times the bare loop's %s, and never six times that", install.took, bare.took)
		}
		b.ReportMetric(install.took.Seconds()/bare.took.Seconds(), "x-bare")
	}
}

func each(t testing.TB, names []string, do func(context.Context, string) error) {
	t.Helper()
	for _, err := range parallel.Each(t.Context(), atOnce, names, do) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bareServices applies the same objects and waits until their Deployments are Available.
func bareServices(t testing.TB, r *rig, count int) time.Duration {
	t.Helper()
	namespace := r.namespace(t)
	var objects []*unstructured.Unstructured
	for i := range count {
		objects = append(objects, objectsOf(t, namespace, service(fmt.Sprintf("s%03d", i)))...)
	}
	began := time.Now()
	r.bare(t, objects)
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var list appsv1.DeploymentList
		if err := r.admin.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		available := slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool {
			return !slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
				return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
			})
		})
		return len(available) == count, nil
	})
	if err != nil {
		t.Fatalf("waiting for the bare Deployments: %v", err)
	}
	return time.Since(began)
}
