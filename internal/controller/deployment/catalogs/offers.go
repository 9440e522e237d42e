// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/catalog"
)

const (
	// mostNeeds bounds the kinds and packages that are looked up for one plan, and mostSearched the catalogs.
	mostNeeds    = 10
	mostSearched = 10
	// offersTimeout bounds the time for all look-ups of one plan.
	offersTimeout = 2 * time.Second
)

// Offers are the packages of the catalogs that a namespace sees which provide kinds, or are the packages that are needed; those of
// catalogs with a higher priority first. A catalog that cannot be read is left out, and so are needs beyond the bounds: a remedy that
// names less is better than a plan that waits.
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
	slices.SortStableFunc(visible, func(a, b v1alpha1.BundleCatalog) int { return cmp.Compare(b.Spec.Priority, a.Spec.Priority) })
	found := map[requirement.Need][]requirement.Offer{}
	for i := range visible[:min(len(visible), mostSearched)] {
		of := advertised(&visible[i])
		for _, need := range needs[:min(len(needs), mostNeeds)] {
			names, err := st.search(ctx, of, need)
			if err != nil {
				ctrl.LoggerFrom(ctx).Info("not searching a catalog for what the plan lacks", "catalog", of.String(), "reason", err.Error())
				break
			}
			for _, name := range names {
				offer := requirement.Offer{Package: name, Catalog: of.Name}
				// The name becomes a part of a command. Others cannot be the package of a BundleDeployment.
				if len(validation.IsDNS1123Subdomain(name)) == 0 && !slices.Contains(found[need], offer) {
					found[need] = append(found[need], offer)
				}
			}
		}
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
