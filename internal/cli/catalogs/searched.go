// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// OpenFor opens the catalogs that a BundleDeployment with spec.catalog searches: without --catalog those of the cluster that its
// namespace sees, and else those of --catalog that spec.catalog.catalogs names. The caller closes the set, also with an error.
func (f *Flags) OpenFor(ctx context.Context, a *kit.App, d *v1alpha1.BundleDeployment) (*Set, error) {
	set := &Set{}
	places, err := parse(f.values)
	if err != nil {
		return set, err
	}
	reader := &clusterReader{app: a, flags: f, searcher: d}
	named := d.Spec.Catalog.Catalogs
	if len(places) == 0 && len(named) == 0 {
		return set, reader.all(ctx, set)
	}
	if len(places) == 0 {
		for _, name := range named {
			if err := reader.one(ctx, set, name); err != nil {
				return set, err
			}
		}
		return set, nil
	}
	if len(named) > 0 {
		if places, err = namedPlaces(a, places, named); err != nil {
			return set, err
		}
	}
	return set, f.open(ctx, reader, set, places)
}

// namedPlaces are the catalogs that spec.catalog.catalogs names. Each of them has to be there, as in a cluster.
func namedPlaces(a *kit.App, places []place, named []string) ([]place, error) {
	for _, name := range named {
		if !slices.ContainsFunc(places, func(p place) bool { return p.name == name }) {
			return nil, fmt.Errorf("spec.catalog.catalogs names the catalog %s, which --catalog does not give: add --catalog %s=PATH", name, name)
		}
	}
	var chosen []place
	for _, p := range places {
		if !slices.Contains(named, p.name) {
			a.Note([]string{fmt.Sprintf("catalog %s is left out, since spec.catalog.catalogs does not name it", p.name)})
			continue
		}
		chosen = append(chosen, p)
	}
	return chosen, nil
}

// selection tells which BundleCatalogs spec.catalog.catalogSelector selects; without it all.
func (r *clusterReader) selection() (func(Seen) bool, error) {
	if r.searcher == nil || r.searcher.Spec.Catalog.CatalogSelector == nil {
		return func(Seen) bool { return true }, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(r.searcher.Spec.Catalog.CatalogSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.catalog.catalogSelector: %w: correct it", err)
	}
	return func(s Seen) bool { return selector.Matches(labels.Set(s.Labels)) }, nil
}
