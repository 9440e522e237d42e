// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/tests/workspace"
)

// converting is a CRD with two versions that name the same field size and bulk.
const converting = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: "URL", caBundle: "BUNDLE"}
  versions:
  - name: v1alpha1
    served: true
    storage: ALPHA
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
  - name: v1
    served: true
    storage: BETA
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {bulk: {type: integer}}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: operator}
data: {runs: "yes"}
`

// converter is a conversion webhook; while dead it answers nothing.
type converter struct {
	*httptest.Server
	dead  atomic.Bool
	calls atomic.Int64
}

func newConverter(t *testing.T) *converter {
	t.Helper()
	c := &converter{}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.calls.Add(1)
		if c.dead.Load() {
			http.NotFound(w, r)
			return
		}
		review := apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			converted, err := convert(raw.Raw, review.Request.DesiredAPIVersion)
			if err != nil {
				t.Error(err)
			}
			response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
		}
		review.Request, review.Response = nil, response
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// die stops the webhook, and makes the API server drop converted objects from its
// caches, which the garbage collector fills, too.
func (c *converter) die(w *world) {
	w.T.Helper()
	c.dead.Store(true)
	other := []byte(`{"spec":{"names":{"categories":["` + c.categories() + `"]}}}`)
	if _, err := w.Dynamic.Resource(definitions).Patch(w.T.Context(), "widgets."+w.widget().Group, types.MergePatchType, other, metav1.PatchOptions{}); err != nil {
		w.T.Fatal(err)
	}
	// A cache that cannot be filled asks for a retry in a second, by default
	// ten times.
	all := w.Admin.Discovery().RESTClient().Get().AbsPath("/apis", w.widget().Group, w.widget().Version, "widgets").MaxRetries(0)
	workspace.Eventually(w.T, "conversion to fail", func() error {
		if err := all.Do(w.T.Context()).Error(); err == nil {
			return fmtError("it does not")
		}
		return nil
	})
}

// categories differ each time.
func (c *converter) categories() string { return fmt.Sprintf("after%d", c.calls.Load()) }

func (c *converter) revive() { c.dead.Store(false) }

func convert(raw []byte, version string) ([]byte, error) {
	object := map[string]any{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	object["apiVersion"] = version
	if spec, _ := object["spec"].(map[string]any); spec != nil {
		from, to := "size", "bulk"
		if strings.HasSuffix(version, "/v1alpha1") {
			from, to = to, from
		}
		if value, found := spec[from]; found {
			spec[to] = value
			delete(spec, from)
		}
	}
	return json.Marshal(object)
}

// bundle is the CRD with the given storage version.
func (c *converter) bundle(w *world, storage string) string {
	w.T.Helper()
	w.widgets() // cleans up, for which nothing must be converted: the webhook ends with the test
	w.T.Cleanup(func() {
		none := []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
		_, _ = w.Dynamic.Resource(definitions).Patch(context.Background(), "widgets."+w.widget().Group, types.MergePatchType, none, metav1.PatchOptions{})
	})
	// NS stands for the namespace in manifests, and may be in base64.
	bundle := func(text []byte) string {
		return strings.ReplaceAll(base64.StdEncoding.EncodeToString(text), "NS", `\x4eS`)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	return strings.NewReplacer(
		"GROUP", w.Namespace+".example.org", "URL", c.URL, "BUNDLE", bundle(certificate),
		"ALPHA", fmt.Sprint(storage == "v1alpha1"), "BETA", fmt.Sprint(storage == "v1"),
	).Replace(converting)
}

// old creates widgets that are stored as v1alpha1 while the CRD already stores v1.
func (c *converter) old(w *world, count int) string {
	w.T.Helper()
	w.MustApply(c.bundle(w, "v1alpha1"))
	workspace.Eventually(w.T, "widgets", func() error {
		for i := range count {
			widget := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": w.widget().Group + "/v1alpha1", "kind": "Widget",
				"metadata": map[string]any{"name": fmt.Sprintf("w%d", i)}, "spec": map[string]any{"size": int64(i + 1)},
			}}
			_, err := w.Dynamic.Resource(w.alpha()).Namespace(w.Namespace).Apply(w.T.Context(), widget.GetName(), widget, metav1.ApplyOptions{FieldManager: "user"})
			if err != nil {
				return err
			}
		}
		return nil
	})
	bundle := c.bundle(w, "v1")
	w.MustApply(bundle)
	workspace.Eventually(w.T, "both versions stored", func() error {
		if stored := w.stored(); len(stored) != 2 {
			return fmtError(fmt.Sprint(stored))
		}
		return nil
	})
	return bundle
}

func (w *world) alpha() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.widget().Group, Version: "v1alpha1", Resource: "widgets"}
}

func (w *world) stored() []string {
	w.T.Helper()
	crd, err := w.definition()
	if err != nil {
		w.T.Fatal(err)
	}
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return stored
}

// unharmed expects the cluster to be usable after a removal with a dead webhook:
// every version lists, and the namespace with the widgets can be deleted.
func (w *world) unharmed(count int) []unstructured.Unstructured {
	w.T.Helper()
	crd, err := w.definition()
	if err != nil {
		w.T.Fatal(err)
	}
	if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy != "None" {
		w.T.Fatalf("conversion strategy %q", strategy)
	}
	var items []unstructured.Unstructured
	for _, version := range []schema.GroupVersionResource{w.alpha(), w.widget()} {
		workspace.Eventually(w.T, "listing "+version.Version, func() error {
			list, err := w.Dynamic.Resource(version).Namespace(w.Namespace).List(w.T.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			if items = list.Items; len(items) != count {
				return fmt.Errorf("%d widgets", len(items))
			}
			return nil
		})
	}
	return items
}

// kept expects the cluster to be usable without the webhook, without a lost value.
func (w *world) kept(count int) {
	w.T.Helper()
	for _, item := range w.unharmed(count) {
		if bulk, _, _ := unstructured.NestedInt64(item.Object, "spec", "bulk"); bulk == 0 {
			w.T.Errorf("%s lost its value: %v", item.GetName(), item.Object["spec"])
		}
		for _, entry := range item.GetManagedFields() {
			if entry.Manager != "user" {
				w.T.Errorf("%s has fields of %s", item.GetName(), entry.Manager)
			}
		}
	}
}

func (w *world) namespaceGoes() {
	w.T.Helper()
	if err := w.Admin.CoreV1().Namespaces().Delete(w.T.Context(), w.Namespace, metav1.DeleteOptions{}); err != nil {
		w.T.Fatal(err)
	}
	workspace.Eventually(w.T, "the namespace to go", func() error {
		list, err := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace).List(w.T.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d widgets are left", len(list.Items))
		}
		return err
	})
}
