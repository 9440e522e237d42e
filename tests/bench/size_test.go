// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
)

// mixed is a bundle of n objects of four kinds, with a prefix of their names.
func mixed(prefix string, n int) fstest.MapFS {
	manifests := [...]string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {a: b}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: NAME}\ndata: {a: Yg==}\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME}\n",
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: NAME}\nspec: {podSelector: {matchLabels: {app: NAME}}, policyTypes: [Ingress]}\n",
	}
	files := fstest.MapFS{}
	for i := range n {
		name := fmt.Sprintf("%03d.yaml", i/100)
		if files[name] == nil {
			files[name] = &fstest.MapFile{}
		}
		text := strings.ReplaceAll(manifests[i%len(manifests)], "NAME", fmt.Sprintf("%s-%05d", prefix, i))
		files[name].Data = append(files[name].Data, "---\n"+text...)
	}
	return files
}

// BenchmarkMixed is one deployment of 1,000 and 25,000 objects of four kinds: time and memory for one object should not grow with
// their number, also when an upgrade renames all of them.
func BenchmarkMixed(b *testing.B) {
	r := newRig(b)
	for _, n := range sizes(1000, 25000) {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				measureMixed(b, r, n)
			}
		})
	}
}

func measureMixed(b *testing.B, r *rig, n int) {
	b.Helper()
	namespace := r.namespace(b)
	empty := r.measure(b, "nothing", func() {})
	r.publish(b, namespace, "v1", mixed("old", n))
	install := r.measure(b, "BundleDeployment, from create to Ready", func() {
		if err := r.deploy(b.Context(), namespace, "app"); err != nil {
			b.Fatal(err)
		}
		r.waitAll(b, namespace, 1, isReady)
	})
	rest := r.measure(b, "second full reconcile, nothing changed", func() { r.again(b, namespace, "again") })
	rename := r.measure(b, "upgrade that renames all", func() {
		revision := r.publish(b, namespace, "v2", mixed("new", n))
		r.waitAll(b, namespace, 1, func(d *v1alpha1.BundleDeployment) bool {
			if refusal := conditions.GetMessage(d, "Stalled"); refusal != "" {
				b.Fatalf("the upgrade that renames all: %s", refusal)
			}
			return runs(revision)(d) && int(d.Status.Inventory.Count) == n
		})
	})
	remove := r.measure(b, "removal", func() { r.clear(b, namespace) })
	printTable(b, fmt.Sprintf("%d objects of four kinds in one deployment", n), []row{install, rest, rename, remove})
	b.ReportMetric(1000*install.cpu/float64(n), "cpu-ms-install/object")
	b.ReportMetric(rest.cpu, "cpu-s-again")
	b.ReportMetric(float64(install.requests.all())/float64(n), "requests/object")
	b.ReportMetric(1000*rename.cpu/float64(n), "cpu-ms-rename/object")
	b.ReportMetric(float64(rename.requests.all())/float64(n), "requests-rename/object")
	b.ReportMetric((rename.peak-empty.peak)*1024/float64(n), "KiB-rename/object")
	b.ReportMetric((install.peak-empty.peak)*1024/float64(n), "KiB-install/object")
}

// BenchmarkManyDeployments is 200, 1,000 and 5,000 deployments of two objects in one namespace: the cost of one should not grow
// with their number.
func BenchmarkManyDeployments(b *testing.B) {
	r := newRig(b)
	for _, count := range sizes(200, 1000, 5000) {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for range b.N {
				measureMany(b, r, count)
			}
		})
	}
}

func measureMany(b *testing.B, r *rig, count int) {
	b.Helper()
	namespace := r.namespace(b)
	names := make([]string, 0, count)
	for i := range count {
		names = append(names, fmt.Sprintf("many%04d", i))
	}
	each(b, names, func(ctx context.Context, name string) error {
		_, err := r.Publish(ctx, namespace, name, "v1", mixed(name, 2))
		return err
	})
	install := r.measure(b, "until all are Ready", func() {
		each(b, names, func(ctx context.Context, name string) error { return r.deploy(ctx, namespace, name) })
		r.waitAll(b, namespace, count, isReady)
	})
	time.Sleep(bookkeeping)
	rest := r.measure(b, "at rest", func() { time.Sleep(30 * time.Second) })
	upgrade := r.measure(b, "upgrade of one of them", func() {
		published, err := r.Publish(b.Context(), namespace, names[count/2], "v2", mixed(names[count/2]+"-b", 2))
		if err != nil {
			b.Fatal(err)
		}
		upgraded := runs(published.Revision)
		r.waitAll(b, namespace, count, func(d *v1alpha1.BundleDeployment) bool { return d.Name != names[count/2] || upgraded(d) })
	})
	printTable(b, fmt.Sprintf("%d deployments of two objects in one namespace", count), []row{install, rest, upgrade})
	remove := r.measure(b, "removal of all", func() { r.clear(b, namespace) })
	printTable(b, "their removal", []row{remove})
	b.ReportMetric(1000*install.cpu/float64(count), "cpu-ms/deployment")
	b.ReportMetric(float64(install.requests.all())/float64(count), "requests/deployment")
	b.ReportMetric(1000*rest.cpu/30, "cpu-ms/s-rest")
	b.ReportMetric(1000*upgrade.cpu, "cpu-ms-upgrade")
	b.ReportMetric(1000*remove.cpu/float64(count), "cpu-ms-removal/deployment")
	b.ReportMetric(install.peak, "MiB-install")
}

// BenchmarkManyKinds is a small deployment on a cluster with 100 and 3,000 more CRDs: what one costs should not grow with the
// number of kinds that it does not use.
func BenchmarkManyKinds(b *testing.B) {
	r := newRig(b)
	if err := apiextensionsv1.AddToScheme(r.admin.Scheme()); err != nil {
		b.Fatal(err)
	}
	for _, count := range sizes(100, 3000) {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for range b.N {
				measureKinds(b, r, count)
			}
		})
	}
}

func measureKinds(b *testing.B, r *rig, count int) {
	b.Helper()
	before := installServices(b, r, 1, false)
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, count)
	for i := range count {
		crds = append(crds, crd(i))
	}
	for _, o := range crds {
		r.gone(b, o.DeepCopy()) // which an earlier measurement deleted
	}
	began := time.Now()
	err := errors.Join(parallel.Each(b.Context(), 4, crds, func(ctx context.Context, o *apiextensionsv1.CustomResourceDefinition) error {
		return r.admin.Create(ctx, o)
	})...)
	if err != nil {
		b.Fatal(err)
	}
	created := time.Since(began)
	for _, o := range crds {
		r.established(b, o)
	}
	first := installServices(b, r, 1, false)
	second := installServices(b, r, 10, false)
	before.what, first.what, second.what = "one deployment before", "one deployment with the CRDs", "ten more"
	printTable(b, fmt.Sprintf("%d CRDs, created in %s", count, created.Round(time.Second)), []row{before, first, second})
	b.ReportMetric(1000*first.cpu, "cpu-ms-first")
	b.ReportMetric(1000*second.cpu/10, "cpu-ms/deployment")
	b.ReportMetric(first.peak-before.peak, "MiB-more")
	for _, o := range crds {
		if err := r.admin.Delete(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

// gone waits until an object does not exist any more.
func (r *rig) gone(t testing.TB, o client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := r.admin.Get(ctx, client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("waiting until %s is gone: %v", o.GetName(), err)
	}
}

// established waits until the API server serves a CRD.
func (r *rig) established(t testing.TB, o *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := r.admin.Get(ctx, client.ObjectKeyFromObject(o), o)
		return slices.ContainsFunc(o.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}), err
	})
	if err != nil {
		t.Fatalf("waiting until %s is established: %v", o.Name, err)
	}
}

const manyKindsGroup = "many.example.org"

// crd is a CustomResourceDefinition of a small schema.
func crd(i int) *apiextensionsv1.CustomResourceDefinition {
	singular := fmt.Sprintf("kind%04d", i)
	o := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + manyKindsGroup}}
	o.Spec.Group, o.Spec.Scope = manyKindsGroup, apiextensionsv1.NamespaceScoped
	o.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: "Kind" + singular[4:]}
	var schema apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(`{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}`), &schema); err != nil {
		panic(err)
	}
	o.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
	}}
	return o
}
