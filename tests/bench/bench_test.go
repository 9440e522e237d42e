// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
)

// row is one line of a table.
type row struct {
	what     string
	took     time.Duration
	cpu      float64 // of the controller and its workers, in seconds
	all      float64 // CPU seconds of all processes: those, the API server, etcd, and this one; 0 if not measured
	requests requests
	peak     float64 // of the controller's memory, in MiB
}

// printTable logs the rows, a line each: the package testing cuts what a benchmark logs after ten lines.
func printTable(t testing.TB, title string, rows []row) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", title)
	for _, r := range rows {
		fmt.Fprintf(&text, "  %-46s %8.2f s", r.what, r.took.Seconds())
		if r.all > 0 {
			fmt.Fprintf(&text, "   %7.2f CPU s in all", r.all)
		}
		if r.peak > 0 {
			fmt.Fprintf(&text, "   %7.2f CPU s   %4.0f MiB", r.cpu, r.peak)
		}
		separator := "   "
		for _, verb := range slices.Sorted(maps.Keys(r.requests.byVerb)) {
			fmt.Fprintf(&text, "%s%d %s", separator, r.requests.byVerb[verb], verb)
			separator = "; "
		}
		text.WriteByte('\n')
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

// manyMaps is a bundle of so many ConfigMaps, a hundred a file; those that changed says have
// another content.
func manyMaps(n int, changed func(int) bool) (fstest.MapFS, []*unstructured.Unstructured) {
	files, objects := fstest.MapFS{}, make([]*unstructured.Unstructured, 0, n)
	for i := range n {
		name, content := fmt.Sprintf("c%05d", i), "first"
		if changed != nil && changed(i) {
			content = "second"
		}
		file := fmt.Sprintf("%03d.yaml", i/100)
		if files[file] == nil {
			files[file] = &fstest.MapFile{}
		}
		long := strings.Repeat("x", 100)
		files[file].Data = fmt.Appendf(files[file].Data,
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %s, b: %s, c: %s}\n", name, long, name, content)
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
			"data": map[string]any{"a": long, "b": name, "c": content},
		}})
	}
	return files, objects
}

// one is what one deployment of many objects costs, beside a bare loop.
type one struct{ bare, install, rest, bareChanged, upgrade, prune, remove row }

func (o one) rows() []row {
	return []row{o.bare, o.install, o.rest, o.bareChanged, o.upgrade, o.prune, o.remove}
}

// measureOne installs one deployment of n ConfigMaps beside a bare loop, has everything
// compared once more although nothing changed, changes one in a hundred, takes half of
// them out of the bundle, and removes the rest.
func measureOne(t testing.TB, r *rig, n int) one {
	t.Helper()
	files, objects := manyMaps(n, nil)
	namespace := r.namespace(t)
	in := func(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
		for _, object := range objects {
			object.SetNamespace(namespace)
		}
		return objects
	}
	measured := one{bare: timed(t, fmt.Sprintf("bare loop, %d at once", atOnce), func() { r.bare(t, in(objects)) })}
	changed := func(i int) bool { return i%100 == 0 }
	after, objects := manyMaps(n, changed)
	objects = in(slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		content, _, _ := unstructured.NestedString(o.Object, "data", "c")
		return content == "first"
	}))
	measured.bareChanged = timed(t, "bare loop over the 1 % that changes", func() { r.bare(t, objects) })

	namespace = r.namespace(t)
	r.publish(t, namespace, "v1", files)
	measured.install = r.measure(t, "BundleDeployment, from create to Ready", func() {
		if err := r.deploy(t.Context(), namespace, "app"); err != nil {
			t.Fatal(err)
		}
		r.waitAll(t, namespace, 1, isReady)
	})
	r.checkStored(t, namespace)
	measured.rest = r.measure(t, "second full reconcile, nothing changed", func() { r.again(t, namespace, "again") })
	measured.upgrade = r.measure(t, "upgrade that changes 1 %", func() {
		r.waitAll(t, namespace, 1, runs(r.publish(t, namespace, "v2", after)))
	})
	half, _ := manyMaps(n/2, changed)
	measured.prune = r.measure(t, "upgrade that leaves half of them out", func() {
		revision := r.publish(t, namespace, "v3", half)
		r.waitAll(t, namespace, 1, func(d *v1alpha1.BundleDeployment) bool {
			return runs(revision)(d) && int(d.Status.Inventory.Count) == n/2
		})
	})
	measured.remove = r.measure(t, "removal of the other half", func() { r.clear(t, namespace) })
	return measured
}

// measure does something and says how long it took and what it cost the controller.
func (r *rig) measure(t testing.TB, what string, do func()) row {
	t.Helper()
	r.peak(t)
	mark := r.mark(t)
	cpu := r.cpu(t)
	ended := r.profile(t, what)
	measured := timed(t, what, do)
	ended()
	measured.cpu, measured.requests, measured.peak = r.cpu(t)-cpu, r.requests(t, mark), r.peak(t)
	return measured
}

// timed does something and says how long it took, and what it cost all processes.
func timed(t testing.TB, what string, do func()) row {
	t.Helper()
	all := cpuOfAll(t)
	began := time.Now()
	do()
	return row{what: what, took: time.Since(began), all: cpuOfAll(t) - all}
}

func (r *rig) publish(t testing.TB, namespace, reference string, files fstest.MapFS) string {
	t.Helper()
	published, err := r.Publish(t.Context(), namespace, "app", reference, files)
	if err != nil {
		t.Fatal(err)
	}
	return published.Revision
}

// runs tells whether a deployment has applied a revision and is healthy.
func runs(revision string) func(*v1alpha1.BundleDeployment) bool {
	return func(d *v1alpha1.BundleDeployment) bool { return isReady(d) && d.Status.Healthy.Revision == revision }
}

// again has everything compared once more. Each request of a deployment needs a value of its own.
func (r *rig) again(t testing.TB, namespace, request string) {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
	patch := `{"metadata":{"annotations":{"` + meta.ReconcileRequestAnnotation + `":"` + request + `"}}}`
	if err := r.admin.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	r.waitAll(t, namespace, 1, func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.LastHandledReconcileAt == request && isReady(d)
	})
}

// checkStored wants the stored object to be far from what etcd takes (S5).
func (r *rig) checkStored(t testing.TB, namespace string) {
	t.Helper()
	var d v1alpha1.BundleDeployment
	if err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "app"}, &d); err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(&d)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the BundleDeployment takes %d KiB with %d objects listed", len(stored)>>10, d.Status.Inventory.Count)
	if len(stored) > 1<<20 {
		t.Errorf("the BundleDeployment takes %d bytes, want at most 1 MiB", len(stored))
	}
}

// checkCosts holds the cost model: about one write an object at first, nothing an
// object when nothing changed.
func checkCosts(t testing.TB, n int, m one) {
	t.Helper()
	if m.install.requests.objects > n+n/10 {
		t.Errorf("%d requests for single objects on install, want about %d", m.install.requests.objects, n)
	}
	if m.rest.requests.objects != 0 {
		t.Errorf("%d requests for single objects when nothing changed, want 0: %v", m.rest.requests.objects, m.rest.requests.byVerb)
	}
	if got, want := m.upgrade.requests.objects, 2*max(1, n/100); got > want+want/10+1 {
		t.Errorf("%d requests for single objects on an upgrade, want a dry run and an apply of each that changed: %d", got, want)
	}
	if limit := 6*3*m.bare.took/2 + 5*time.Second; m.install.took > limit {
		t.Errorf("install took %s, want at most 1.5 times the bare loop's %s, and never six times that", m.install.took, m.bare.took)
	}
}

// TestHundredConfigMaps is the scaled-down run that belongs to every test run.
func TestHundredConfigMaps(t *testing.T) {
	r := newRig(t)
	measured := measureOne(t, r, 100)
	printTable(t, "100 ConfigMaps in one deployment", measured.rows())
	checkCosts(t, 100, measured)
}

// sizes are the sizes that a benchmark measures: the first one, and all of them with SATCHEL_FULL=1.
func sizes(all ...int) []int {
	if os.Getenv("SATCHEL_FULL") == "" {
		return all[:1]
	}
	return all
}

// BenchmarkConfigMaps is one deployment of 1,000, 10,000 and 20,000 ConfigMaps, and how the
// time for one object grows with their number.
func BenchmarkConfigMaps(b *testing.B) {
	r := newRig(b)
	first := 0.0
	for _, n := range sizes(1000, 10000, 20000) {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				m := measureOne(b, r, n)
				printTable(b, fmt.Sprintf("%d ConfigMaps in one deployment", n), m.rows())
				checkCosts(b, n, m)
				ratio := m.install.took.Seconds() / m.bare.took.Seconds()
				if first == 0 {
					first = ratio
				}
				b.ReportMetric(ratio, "x-bare")
				b.ReportMetric(m.install.all/m.bare.all, "x-bare-cpu")
				b.ReportMetric(ratio/first, "growth")
				b.ReportMetric(m.rest.took.Seconds(), "s-again")
				b.ReportMetric(m.upgrade.took.Seconds(), "s-change")
				b.ReportMetric(m.install.cpu, "cpu-s-install")
				b.ReportMetric(m.rest.cpu, "cpu-s-again")
				b.ReportMetric(m.upgrade.cpu, "cpu-s-change")
				b.ReportMetric(float64(m.install.requests.all()), "requests-install")
				b.ReportMetric(float64(m.rest.requests.all()), "requests-again")
				b.ReportMetric(float64(m.upgrade.requests.all()), "requests-change")
				b.ReportMetric(m.install.peak, "MiB-install")
			}
		})
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

// BenchmarkDeployments is 100 and 1,000 deployments of four objects at once, until all are
// Ready, beside a bare loop until all Deployments are Available (S1). The same number is created before their sources, too: what
// they need while they wait should be nothing.
func BenchmarkDeployments(b *testing.B) {
	r := newRig(b)
	for _, count := range sizes(100, 1000) {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for range b.N {
				bare := bareServices(b, r, count)
				install := installServices(b, r, count, false)
				early := installServices(b, r, count, true)
				printTable(b, fmt.Sprintf("%d deployments of four objects, created at once", count), []row{bare, install, early})
				if install.took > 6*5*bare.took/2 {
					b.Errorf("took %s, want at most 2.5 times the bare loop's %s, and never six times that", install.took, bare.took)
				}
				b.ReportMetric(install.took.Seconds()/bare.took.Seconds(), "x-bare")
				b.ReportMetric(install.all/bare.all, "x-bare-cpu")
				b.ReportMetric(1000*install.cpu/float64(count), "cpu-ms/deployment")
				b.ReportMetric(float64(install.requests.all())/float64(count), "requests/deployment")
				b.ReportMetric(float64(early.requests.all())/float64(count), "requests-early/deployment")
				b.ReportMetric(install.peak, "MiB-install")
			}
		})
	}
}

// installServices creates deployments at once, and waits until all are Ready. They are early if they are created, and wait, before
// any of their sources exists.
func installServices(b *testing.B, r *rig, count int, early bool) row {
	b.Helper()
	namespace := r.namespace(b)
	names := make([]string, 0, count)
	for i := range count {
		names = append(names, fmt.Sprintf("s%03d", i))
	}
	publish := func(ctx context.Context, name string) error {
		_, err := r.Publish(ctx, namespace, name, "v1", service(name))
		return err
	}
	deploy := func(ctx context.Context, name string) error { return r.deploy(ctx, namespace, name) }
	what := fmt.Sprintf("%d BundleDeployments, until all are Ready", count)
	if early {
		what = fmt.Sprintf("%d BundleDeployments, before their sources", count)
	} else {
		each(b, names, publish)
	}
	install := r.measure(b, what, func() {
		each(b, names, deploy)
		if early {
			r.waitAll(b, namespace, count, waitsForSource)
			each(b, names, publish)
		}
		r.waitAll(b, namespace, count, isReady)
	})
	r.clear(b, namespace)
	return install
}

func waitsForSource(d *v1alpha1.BundleDeployment) bool {
	return conditions.GetReason(d, meta.ReadyCondition) == v1alpha1.ReasonSourceNotFound
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
func bareServices(t testing.TB, r *rig, count int) row {
	t.Helper()
	namespace := r.namespace(t)
	var objects []*unstructured.Unstructured
	for i := range count {
		objects = append(objects, objectsOf(t, namespace, service(fmt.Sprintf("s%03d", i)))...)
	}
	available := func(o client.Object) bool {
		d, ok := o.(*appsv1.Deployment)
		return ok && slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
		})
	}
	return timed(t, "bare loop, until all are Available", func() {
		r.bare(t, objects)
		r.follow(t, &appsv1.DeploymentList{}, namespace, count, available)
	})
}
