// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/catalog"
)

// offersTimeout bounds the time for all look-ups of one plan.
const offersTimeout = 2 * time.Second

// Offers are the packages of the catalogs that a namespace sees which provide kinds, or are the packages that are needed; those of
// catalogs with a higher priority first. A catalog that cannot be read is left out.
func (st *Stage) Offers(ctx context.Context, namespace string, needs []requirement.Need) map[requirement.Need][]requirement.Offer {
	if st.Packages == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, offersTimeout)
	defer cancel()
	visible, err := st.visibleIn(ctx, namespace, func(c *v1alpha1.BundleCatalog) bool { return c.Status.Content != nil && c.Status.URLs != nil })
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("not searching catalogs for what the plan lacks", "reason", err.Error())
		return nil
	}
	searched := make([]requirement.Searched, 0, len(visible))
	for i := range visible {
		of := advertised(&visible[i])
		searched = append(searched, requirement.Searched{Name: of.Name, Priority: visible[i].Spec.Priority, Packages: func(need requirement.Need) ([]string, error) {
			return st.search(ctx, of, need)
		}})
	}
	found, unread := requirement.Search(searched, needs)
	for _, err := range unread {
		ctrl.LoggerFrom(ctx).Info("not searching a catalog for what the plan lacks", "reason", err.Error())
	}
	return found
}

// search asks one catalog.
func (st *Stage) search(ctx context.Context, of packages.Catalog, need requirement.Need) ([]string, error) {
	if need.Package == "" {
		return st.Packages.Providers(ctx, of, catalog.Kind{Group: need.Kind.Group, Version: need.Kind.Version, Kind: need.Kind.Kind})
	}
	has, err := st.Packages.Has(ctx, of, need.Package)
	if err != nil || !has {
		return nil, err
	}
	return []string{need.Package}, nil
}
