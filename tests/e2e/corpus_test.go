// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/tests/installation"
)

// realBundles are published operators, and whether they are to watch only their
// own namespace; the others watch all.
var realBundles = []struct {
	name, version string
	own           bool
}{
	{"grafana-operator", "5.22.2", false},
	{"strimzi-kafka-operator", "1.1.0", false},
	{"external-secrets-operator", "0.10.7", false},
	{"keycloak-operator", "26.7.0", false},
	{"prometheus", "0.47.0", true},
	{"flux", "2.2.2", false},
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
			namespace := r.namespace(t)
			options := convert.Options{InstallNamespace: namespace}
			if bundle.own {
				options.RegistryV1.WatchNamespaces = []string{namespace}
			}
			rendered, err := convert.Convert(files, options)
			if err != nil {
				t.Fatal(err)
			}
			r.provideForeignKinds(t, rendered.Objects)
			image := r.push(t, bundle.name+":v"+bundle.version, under(t, files, "manifests"), under(t, files, "metadata"))
			start := time.Now()
			key := r.deploy(t, namespace, bundle.name, image, func(d *v1alpha1.BundleDeployment) {
				if bundle.own {
					d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{WatchNamespaces: []string{namespace}}
				}
			})
			d := r.ready(t, key)
			took := time.Since(start)
			if got := int(d.Status.Inventory.Count); got != len(rendered.Objects) || int(d.Status.Objects.Applied) != got {
				t.Errorf("%d objects in the inventory, %d applied, %d rendered", got, d.Status.Objects.Applied, len(rendered.Objects))
			}
			pods := r.runningPods(t, namespace)
			if want := count(rendered.Objects, "Deployment"); pods < want {
				t.Errorf("%d Pods run for %d Deployments", pods, want)
			}
			start = time.Now()
			r.remove(t, key)
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
	if err := r.admin.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
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
		err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(object), live)
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
			t.Errorf("CRD %s is kept without a mark", object.GetName())
		}
		if err := r.admin.Delete(t.Context(), live); err != nil {
			t.Error(err)
		}
	}
}

// provideForeignKinds installs, for kinds that neither Kubernetes nor the bundle
// defines, a definition that accepts anything, as whoever brings them would.
func (r *rig) provideForeignKinds(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		if gvk.Group != "monitoring.coreos.com" {
			continue
		}
		plural := strings.ToLower(gvk.Kind) + "s"
		if defines(objects, plural+"."+gvk.Group) {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + gvk.Group}}
		crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: gvk.Kind, ListKind: gvk.Kind + "List", Singular: strings.ToLower(gvk.Kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: gvk.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}}}},
		}
		r.provide(t, crd)
	}
}

func defines(objects []*unstructured.Unstructured, crd string) bool {
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" && object.GetName() == crd {
			return true
		}
	}
	return false
}

// provide creates a definition for the time of a test, and waits until it is served.
func (r *rig) provide(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := r.admin.Create(t.Context(), crd); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.admin.Delete(context.WithoutCancel(t.Context()), crd) })
	r.eventually(t, t.Context(), "the definition is established", func(ctx context.Context) (bool, string) {
		var live apiextensionsv1.CustomResourceDefinition
		if err := r.admin.Get(ctx, client.ObjectKeyFromObject(crd), &live); err != nil {
			return false, err.Error()
		}
		for _, condition := range live.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, ""
			}
		}
		return false, "not established"
	})
}
