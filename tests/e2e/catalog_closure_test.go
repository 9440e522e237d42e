// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// TestC51ClosureInstalls applies what satchel resolve --with-dependencies prints, on a cluster that has nothing of it: the portal
// has an object of a kind that the bundle of another package defines.
func TestC51ClosureInstalls(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	group := namespace + ".example.org"
	push := func(name, manifest string) string {
		repository := "closure/" + namespace + "/" + name
		digest, err := r.Registry.Push(t.Context(), repository+":v1.0.0", fstest.MapFS{"manifests/all.yaml": {Data: []byte(manifest)}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Registry.Host() + "/" + repository + "@" + digest
	}
	images := map[string]string{
		"cache": push("cache", fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: caches, singular: cache, kind: Cache, listKind: CacheList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group)),
		"config": push("config", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n"),
		"portal": push("portal", fmt.Sprintf("apiVersion: %s/v1\nkind: Cache\nmetadata: {name: portal}\n", group)),
	}
	kind := fmt.Sprintf(`{"group":%q,"version":"v1","kind":"Cache"}`, group)
	properties := map[string]string{
		"cache":  `,{"type":"olm.gvk","value":` + kind + `}`,
		"portal": `,{"type":"olm.gvk.required","value":` + kind + `},{"type":"olm.package.required","value":{"packageName":"config","versionRange":"<2.0.0"}}`,
	}
	var fbc strings.Builder
	for name, image := range images {
		fmt.Fprintf(&fbc, `{"schema":"olm.package","name":%[1]q}
{"schema":"olm.bundle","package":%[1]q,"name":"%[1]s.v1.0.0","image":%[2]q,"properties":[{"type":"olm.package","value":{"packageName":%[1]q,"version":"1.0.0"}}%[3]s]}
`, name, image, properties[name])
	}
	file := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(file, []byte(fbc.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	repository := "closure/" + namespace + "/catalog:latest"
	if _, err := r.Registry.Push(t.Context(), repository, fstest.MapFS{"configs/catalog.json": {Data: []byte(fbc.String())}}); err != nil {
		t.Fatal(err)
	}
	object := &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "community"}}
	object.Spec.Source.Image = &v1alpha1.ImageSource{Reference: r.Registry.Host() + "/" + repository, Insecure: true}
	if err := r.Admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}

	// Without them, the plan says which package provides the kind: C50.
	early := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "early"}}
	early.Spec.ServiceAccountName = "installer"
	early.Spec.Catalog = &v1alpha1.CatalogPackage{Package: "portal", Image: &v1alpha1.CatalogImage{Insecure: true}}
	if err := r.Admin.Create(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	r.Eventually(t, t.Context(), "the provider is named", func(ctx context.Context) (bool, string) {
		if err := r.Admin.Get(ctx, client.ObjectKeyFromObject(early), early); err != nil {
			return false, err.Error()
		}
		said := conditions.GetMessage(early, meta.ReadyCondition)
		return strings.Contains(said, "install package cache of catalog community, which provides it"), said
	})
	r.satchel(t, namespace, "plan", "early").says(t, kit.ExitError, "install package cache of catalog community, which provides it")
	if err := r.Admin.Delete(t.Context(), early); err != nil {
		t.Fatal(err)
	}

	manifests := r.satchel(t, namespace, "resolve", "portal", "--with-dependencies", "--catalog", "community="+file, "-o", "yaml")
	manifests.says(t, kit.ExitOK, "- name: cache", "- name: config")
	// The last one first: what it depends on decides about the order, and not the order of the manifests.
	documents := strings.Split(manifests.out, "---\n")
	for i := len(documents) - 1; i >= 0; i-- {
		if documents[i] != "" {
			r.Apply(t, documents[i])
		}
	}
	for name := range images {
		r.Ready(t, client.ObjectKey{Namespace: namespace, Name: name})
	}
	portal := &unstructured.Unstructured{}
	portal.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Cache"})
	for _, live := range []client.Object{portal, &corev1.ConfigMap{}} {
		key := client.ObjectKey{Namespace: namespace, Name: "portal"}
		if live != portal {
			key.Name = "config"
		}
		if err := r.Admin.Get(t.Context(), key, live); err != nil {
			t.Error(err)
		}
	}
}
