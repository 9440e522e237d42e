// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/workspace"
)

const benchObjects = 1000

func benchMaps(namespace string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for i := range benchObjects {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": fmt.Sprintf("map-%04d", i), "namespace": namespace},
			"data":     map[string]any{"index": fmt.Sprint(i), "text": "some text that a person might have written"},
		}})
	}
	return objects
}

// bareLoop applies objects as a script would: server-side, in parallel, nothing else.
func bareLoop(t *testing.T, w *world, namespace string) time.Duration {
	t.Helper()
	config := w.ControlPlane.RESTConfig()
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects := benchMaps(namespace)
	work := make(chan *unstructured.Unstructured)
	var group sync.WaitGroup
	start := time.Now()
	for range 16 {
		group.Go(func() {
			for object := range work {
				body, err := json.Marshal(object)
				if err == nil {
					_, err = client.Resource(configMaps).Namespace(namespace).Patch(context.Background(), object.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "bare-loop"})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, object := range objects {
		work <- object
	}
	close(work)
	group.Wait()
	return time.Since(start)
}

// The cost model: an install costs about one write an object and at most 1.5 times
// a bare loop; an unchanged object costs no request. The limits asserted are
// six times the aims, for machines are noisy.
func TestCostOfThousandObjects(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	warm := controlplane.NewNamespace(t, w.ControlPlane)
	bareLoop(t, w, warm)
	bare := bareLoop(t, w, controlplane.NewNamespace(t, w.ControlPlane))

	run := func(what string, objects []*unstructured.Unstructured) (time.Duration, int64, apply.Result) {
		before, start := w.Client.Requests(), time.Now()
		p := w.Plan(objects)
		missing, err := preflight.Check(t.Context(), w.Client, p)
		if err != nil || len(missing.Violations) > 0 || len(p.Violations) > 0 {
			t.Fatal(err, missing, p.Violations)
		}
		if _, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{}); err != nil {
			t.Fatal(err)
		}
		result, err := apply.Apply(t.Context(), w.Client, p, apply.Options{})
		if err != nil || !result.Complete() {
			t.Fatal(err, result.Errors())
		}
		encoded, err := result.Inventory.Encode()
		if err != nil {
			t.Fatal(err)
		}
		w.Inventory = result.Inventory
		took, requests := time.Since(start), w.Client.Requests()-before
		t.Logf("%-28s %6s %5d requests (%.3f an object), ratio to the bare loop %.2f, inventory %d bytes",
			what, took.Round(time.Millisecond), requests, float64(requests)/benchObjects, took.Seconds()/bare.Seconds(), len(encoded.Compressed))
		return took, requests, result
	}
	t.Logf("%-28s %6s", "bare loop", bare.Round(time.Millisecond))
	objects := benchMaps(w.Namespace)
	took, requests, _ := run("install", objects)
	if took > 6*bare*3/2 || requests > benchObjects*11/10 {
		t.Errorf("install: %s and %d requests", took, requests)
	}
	_, requests, result := run("nothing changed", objects)
	if requests > 5 || result.Count(apply.Unchanged) != benchObjects {
		t.Errorf("nothing changed: %d requests", requests)
	}
	for i := range benchObjects / 100 {
		data, _, _ := unstructured.NestedMap(objects[i*100].Object, "data")
		data["text"] = "changed"
		objects[i*100].Object["data"] = data
	}
	_, requests, result = run("one in a hundred changed", objects)
	if requests > 2*benchObjects/100+5 || result.Count(apply.Updated) != benchObjects/100 {
		t.Errorf("upgrade: %d requests, %v", requests, workspace.Kinds(result))
	}
	before, start := w.Client.Requests(), time.Now()
	w.removeAll()
	t.Logf("%-28s %6s %5d requests", "removal", time.Since(start).Round(time.Millisecond), w.Client.Requests()-before)
}
