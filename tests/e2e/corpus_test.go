// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// realBundles are published operators, and whether they are to watch only their
// own namespace; the other one watches all, and has a webhook. All of the corpus
// are installed in tests/operators.
var realBundles = []struct {
	name, version string
	own           bool
}{
	{"node-maintenance-operator", "0.20.1", false},
	{"prometheus", "0.47.0", true},
}

// Real bundles, pushed as images of several layers as OLM bundles are, are
// installed to Ready with running Pods, and removed again.
func TestRealBundles(t *testing.T) {
	corpus := filepath.Join(installation.Root(), "..", "shared", "corpus", "registryv1", "bundles")
	if _, err := os.Stat(corpus); err != nil {
		t.Skip("the corpus of real bundles is not beside this repository; nothing is installed from it")
	}
	r := newRig(t)
	for _, bundle := range realBundles {
		t.Run(bundle.name, func(t *testing.T) {
			files := os.DirFS(filepath.Join(corpus, bundle.name, bundle.version))
			namespace := r.Namespace(t)
			options := convert.Options{InstallNamespace: namespace, RegistryV1: registryv1.Options{CertificateProvider: registryv1.SelfSigned}}
			if bundle.own {
				options.RegistryV1.WatchNamespaces = []string{namespace}
			}
			rendered, err := convert.Convert(files, options)
			if err != nil {
				t.Fatal(err)
			}
			want := len(rendered.Objects)
			if certificates := len(rendered.Certificates); certificates > 0 {
				want += certificates + 1 // their authority
			}
			image := r.Push(t, bundle.name+":v"+bundle.version, under(t, files, "manifests"), under(t, files, "metadata"))
			start := time.Now()
			key := r.Deploy(t, namespace, bundle.name, image, func(d *v1alpha1.BundleDeployment) {
				if bundle.own {
					d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{WatchNamespaces: []string{namespace}}
				}
			})
			d := r.Ready(t, key)
			took := time.Since(start)
			if got := int(d.Status.Inventory.Count); got != want || int(d.Status.Objects.Applied) != got {
				t.Errorf("%d objects in the inventory, %d applied, %d wanted", got, d.Status.Objects.Applied, want)
			}
			pods := r.runningPods(t, namespace)
			if want := count(rendered.Objects, "Deployment"); pods < want {
				t.Errorf("%d Pods run for %d Deployments", pods, want)
			}
			start = time.Now()
			r.Remove(t, key)
			t.Logf("%s %s: %d objects rendered and applied, %d Pods, Ready in %.1f s, removed in %.1f s",
				bundle.name, bundle.version, len(rendered.Objects), pods, took.Seconds(), time.Since(start).Seconds())
			r.checkRemoved(t, rendered.Objects)
		})
	}
}

// under gives a layer with one folder of a tree.
func under(t *testing.T, files fs.FS, folder string) fs.FS {
	t.Helper()
	layer := fstest.MapFS{}
	err := fs.WalkDir(files, folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		layer[path] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

func count(objects []*unstructured.Unstructured, kind string) int {
	found := 0
	for _, object := range objects {
		if object.GetKind() == kind {
			found++
		}
	}
	return found
}

func (r *rig) runningPods(t *testing.T, namespace string) int {
	t.Helper()
	var pods corev1.PodList
	if err := r.Admin.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	running := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running
}

// checkRemoved makes sure that all is gone but the CRDs, which are marked as
// orphaned, and deletes these.
func (r *rig) checkRemoved(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		live := object.DeepCopy()
		err := r.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), live)
		if object.GetKind() != "CustomResourceDefinition" {
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s %s/%s is still there (%v)", object.GetKind(), object.GetNamespace(), object.GetName(), err)
			}
			continue
		}
		if err != nil {
			t.Errorf("CRD %s was not kept: %v", object.GetName(), err)
			continue
		}
		if live.GetAnnotations()[v1alpha1.OrphanedAnnotation] == "" {
			t.Errorf("CRD %s is kept without the orphaned annotation", object.GetName())
		}
		if err := r.Admin.Delete(t.Context(), live); err != nil {
			t.Error(err)
		}
	}
}
