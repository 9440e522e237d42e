// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment/figures"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// forgotten is the deployment of the test. Its values are of no use to anything else.
var forgotten = types.NamespacedName{Namespace: "forgotten-namespace", Name: "forgotten-name"}

// TestForget puts a deployment into every map of the reconciler with names as keys, and wants it gone from all of them
// after forget. A new memory of deployments is found by its type, and needs no line here.
func TestForget(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newForgetful(t, registry)
	const uid = "forgotten-uid"
	r.memory.Keep(forgotten, stage.Note{UID: uid})
	if err := r.Snapshots.Save(uid, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	r.Expiry.Show(forgotten, map[string]time.Time{"secret": time.Now()})
	r.Holds.Show(forgotten, 1)
	r.Work.Written(forgotten, &apply.Result{Outcomes: []apply.Outcome{{Kind: apply.Repaired}}})
	_, _ = r.renderer.Conversions.Convert(t.Context(), forgotten, "", func(ctx context.Context) (*jobs.Converted, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, func() {})

	filled := map[string]reflect.Value{}
	namedMaps(reflect.ValueOf(r).Elem(), "Reconciler", map[uintptr]bool{}, func(path string, m reflect.Value) {
		if m.IsNil() {
			m.Set(reflect.MakeMap(m.Type()))
		}
		if key := reflect.ValueOf(forgotten); !m.MapIndex(key).IsValid() {
			m.SetMapIndex(key, something(m.Type().Elem()))
		}
		filled[path] = m
	})
	for _, path := range []string{"Reconciler.memory.notes", "Reconciler.scrubs.of", "Reconciler.watches.subs", "Reconciler.names.subs", "Reconciler.renderer.Conversions.pending"} {
		if !filled[path].IsValid() {
			t.Errorf("%s is not among the maps that were found", path)
		}
	}

	if err := r.forget(forgotten); err != nil {
		t.Fatal(err)
	}
	for path, m := range filled {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if !m.MapIndex(reflect.ValueOf(forgotten)).IsValid() {
				break
			}
			if path != "Reconciler.renderer.Conversions.pending" || time.Now().After(deadline) { // which is dropped once its process has ended
				t.Errorf("%s is not forgotten: have forget call its owner", path)
				break
			}
		}
	}
	if _, found, err := r.Snapshots.Load(uid); found || err != nil {
		t.Errorf("the snapshot is still there: %v (%v)", found, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if strings.Contains(metric.String(), forgotten.Name) {
				t.Errorf("%s still has %s", family.GetName(), metric)
			}
		}
	}
}

// newForgetful is a reconciler with everything that remembers deployments, and no connection.
func newForgetful(t *testing.T, registry *prometheus.Registry) *Reconciler {
	t.Helper()
	dir := t.TempDir()
	loader, err := loader.New(loader.Options{
		Client: http.DefaultClient, ServerURLs: []string{"http://127.0.0.1:1"}, CacheDir: filepath.Join(dir, "artifacts"), CacheBytes: 1 << 20, Limits: fetch.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := lastapplied.Open(filepath.Join(dir, "applied"), nil)
	if err != nil {
		t.Fatal(err)
	}
	expiry, err := figures.NewExpiry(registry)
	if err != nil {
		t.Fatal(err)
	}
	holds, err := figures.NewHolds(registry)
	if err != nil {
		t.Fatal(err)
	}
	work, err := figures.NewWork(registry)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReconciler(Deps{
		Artifacts: loader, Snapshots: snapshots, Expiry: expiry, Holds: holds, Work: work, Watches: drift.Options{Limit: 1},
		PerNamespace: 1, Remotely: 1,
	})
	r.renderer.Conversions.Patience = 0
	return r
}

// something is a value that is neither nil nor 0.
func something(of reflect.Type) reflect.Value {
	switch of.Kind() {
	case reflect.Int, reflect.Int64:
		return reflect.ValueOf(1).Convert(of)
	case reflect.Pointer:
		return reflect.New(of.Elem())
	case reflect.Map:
		return reflect.MakeMap(of)
	}
	return reflect.Zero(of)
}

// namedMaps finds the maps with names of objects as keys in the fields of Satchel's own types, through pointers.
func namedMaps(v reflect.Value, path string, seen map[uintptr]bool, do func(path string, m reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] || !strings.Contains(v.Type().Elem().PkgPath(), "satchel-dev/satchel") {
			return
		}
		seen[v.Pointer()] = true
		namedMaps(v.Elem(), path, seen, do)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			if field.CanAddr() { // also what is not exported
				field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
			}
			namedMaps(field, path+"."+v.Type().Field(i).Name, seen, do)
		}
	case reflect.Map:
		if v.Type().Key() == reflect.TypeFor[types.NamespacedName]() {
			do(path, v)
		}
	}
}
