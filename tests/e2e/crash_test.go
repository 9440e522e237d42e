// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// F4: the controller is killed after k of 60 writes; the next revision does not
// contain the objects any more. Nothing may stay behind.
func TestF4KilledApplyLeavesNoOrphan(t *testing.T) {
	r := newRig(t)
	for _, k := range []int32{1, 17, 59} {
		t.Run(fmt.Sprintf("after %d writes", k), func(t *testing.T) {
			namespace := r.Namespace(t)
			repository := fmt.Sprintf("f4-%d:v1", k)
			image := r.Push(t, repository, configMaps("doomed", 60))
			var writes atomic.Int32
			killed := make(chan struct{})
			r.proxy.onAnswer(func(request *http.Request, code int) {
				if isWrite(request, namespace) && code < 300 && writes.Add(1) == k {
					r.Kill(deploymentController)
					close(killed)
				}
			})
			key := r.Deploy(t, namespace, "app", image, nil)
			select {
			case <-killed:
			case <-time.After(patience):
				t.Fatalf("the controller wrote %d of %d objects; its log ends in:\n%s", writes.Load(), k, r.Log(deploymentController))
			}
			r.proxy.onAnswer(nil)
			first := r.published(t, key)
			r.Push(t, repository, configMaps("stays", 2))
			r.Until(t, key, "the source publishes the next revision", func(*v1alpha1.BundleDeployment) bool {
				return r.published(t, key) != first
			})
			if err := r.Start(deploymentController); err != nil {
				t.Fatal(err)
			}
			d := r.Until(t, key, "Ready with two objects", func(d *v1alpha1.BundleDeployment) bool {
				return conditions.IsTrue(d, meta.ReadyCondition) && d.Status.Inventory != nil && d.Status.Inventory.Count == 2
			})
			t.Logf("killed after %d of %d writes seen; Ready at %s", k, writes.Load(), d.Status.Applied.Revision)
			if orphans := r.named(t, namespace, "doomed"); len(orphans) > 0 {
				t.Errorf("%d orphans: %v", len(orphans), orphans)
			}
			if kept := r.named(t, namespace, "stays"); len(kept) != 2 {
				t.Errorf("the next revision has %v, want two objects", kept)
			}
		})
	}
}

// published is the revision that a source advertises; "" for none.
func (r *rig) published(t *testing.T, key client.ObjectKey) string {
	t.Helper()
	var source v1alpha1.BundleSource
	if err := r.Admin.Get(t.Context(), key, &source); err != nil || source.Status.Artifact == nil {
		return ""
	}
	return source.Status.Artifact.Revision
}

func configMaps(prefix string, count int) fstest.MapFS {
	files := fstest.MapFS{}
	for i := range count {
		name := fmt.Sprintf("%s-%02d", prefix, i)
		files[name+".yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: b}\n")}
	}
	return files
}

// isWrite tells whether a request writes a ConfigMap of a namespace, and not in a dry run.
func isWrite(request *http.Request, namespace string) bool {
	return request.Method == http.MethodPatch && request.URL.Query().Get("dryRun") == "" &&
		strings.Contains(request.URL.Path, "/namespaces/"+namespace+"/configmaps/")
}

// named lists the ConfigMaps of a namespace with a prefix.
func (r *rig) named(t *testing.T, namespace, prefix string) []string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := r.Admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		if strings.HasPrefix(item.Name, prefix) {
			names = append(names, item.Name)
		}
	}
	return names
}
