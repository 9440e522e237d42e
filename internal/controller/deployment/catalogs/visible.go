// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
)

// visible are the BundleCatalogs that a deployment searches, sorted by name.
func (st *Stage) visible(ctx context.Context, d *v1alpha1.BundleDeployment) ([]v1alpha1.BundleCatalog, error) {
	selects, err := selection(d.Spec.Catalog)
	if err != nil {
		return nil, err
	}
	found, err := st.visibleIn(ctx, d.Namespace, selects)
	if err != nil {
		return nil, err
	}
	return found, missing(d, found)
}

// visibleIn are the BundleCatalogs that a namespace sees, sorted by name: its own, and those of the shared one, unless it has one of
// the same name.
func (st *Stage) visibleIn(ctx context.Context, namespace string, selects func(*v1alpha1.BundleCatalog) bool) ([]v1alpha1.BundleCatalog, error) {
	var found []v1alpha1.BundleCatalog
	names := map[string]bool{}
	for _, namespace := range []string{namespace, st.Shared} {
		if namespace == "" {
			continue
		}
		var list v1alpha1.BundleCatalogList
		if err := st.Reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the bundlecatalogs of namespace %s: %w", namespace, err)
		}
		own := map[string]bool{}
		for i := range list.Items {
			c := &list.Items[i]
			own[c.Name] = true
			if !names[c.Name] && selects(c) {
				found = append(found, *c)
			}
		}
		for name := range own {
			names[name] = true
		}
	}
	slices.SortFunc(found, func(a, b v1alpha1.BundleCatalog) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// selection tells which catalogs spec.catalog searches.
func selection(of *v1alpha1.CatalogPackage) (func(*v1alpha1.BundleCatalog) bool, error) {
	switch {
	case len(of.Catalogs) > 0:
		return func(c *v1alpha1.BundleCatalog) bool { return slices.Contains(of.Catalogs, c.Name) }, nil
	case of.CatalogSelector != nil:
		selector, err := metav1.LabelSelectorAsSelector(of.CatalogSelector)
		if err != nil {
			return nil, failure.Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Err: fmt.Errorf("spec.catalog.catalogSelector: %w: correct it", err)}
		}
		return func(c *v1alpha1.BundleCatalog) bool { return selector.Matches(labels.Set(c.Labels)) }, nil
	}
	return all, nil
}

func all(*v1alpha1.BundleCatalog) bool { return true }

// missing is the failure of a deployment with catalogs that do not exist.
func missing(d *v1alpha1.BundleDeployment, found []v1alpha1.BundleCatalog) error {
	for _, name := range d.Spec.Catalog.Catalogs {
		if !slices.ContainsFunc(found, func(c v1alpha1.BundleCatalog) bool { return c.Name == name }) {
			return failure.Error{Reason: v1alpha1.ReasonCatalogNotFound, Woken: true, Err: fmt.Errorf(
				"bundlecatalog %s/%s does not exist: create it, or correct spec.catalog.catalogs", d.Namespace, name)}
		}
	}
	if len(found) > 0 {
		return nil
	}
	what := "there is no bundlecatalog in namespace " + d.Namespace
	if d.Spec.Catalog.CatalogSelector != nil {
		what = "no bundlecatalog that namespace " + d.Namespace + " sees has the labels of spec.catalog.catalogSelector"
	}
	return failure.Error{Reason: v1alpha1.ReasonCatalogNotFound, Woken: true, Err: fmt.Errorf("%s: create one, or have one of the shared namespace provided", what)}
}

// served tells whether a catalog serves something, and whether one that does not counts: it is named, or what it served was
// withdrawn because its signature is not trusted any more.
func served(d *v1alpha1.BundleDeployment, c *v1alpha1.BundleCatalog) (serves, counts bool) {
	if c.Status.Content != nil && c.Status.URLs != nil {
		return true, true
	}
	return false, len(d.Spec.Catalog.Catalogs) > 0 || conditions.IsFalse(c, v1alpha1.SourceVerifiedCondition)
}

// notReady is the failure of a catalog that serves nothing.
func notReady(c *v1alpha1.BundleCatalog) error {
	text := "it was not fetched yet"
	if ready := conditions.Get(c, v1alpha1.ReadyCondition); ready != nil && ready.Message != "" {
		text = ready.Message
	}
	return failure.Error{Reason: v1alpha1.ReasonCatalogNotReady, Woken: true, Waiting: true, Err: fmt.Errorf(
		"bundlecatalog %s/%s serves nothing: %s", c.Namespace, c.Name, text)}
}

// advertised is what the status of a catalog says about where it is served.
func advertised(c *v1alpha1.BundleCatalog) packages.Catalog {
	return packages.Catalog{Namespace: c.Namespace, Name: c.Name, BaseURL: c.Status.URLs.Base, Content: c.Status.Content.Digest}
}
