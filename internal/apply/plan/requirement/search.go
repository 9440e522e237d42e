// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// mostNeeds bounds the kinds and packages that are looked up for one plan, and mostSearched the catalogs.
	mostNeeds    = 10
	mostSearched = 10
)

// Searched is a catalog that can be asked for packages.
type Searched struct {
	Name     string
	Priority int32
	// Packages are those that provide a kind, or the one that is needed, if the catalog has it.
	Packages func(Need) ([]string, error)
}

// Search asks catalogs for what is needed, those with a higher priority first. A catalog that cannot be read is left out, and returned
// as an error; so are needs and catalogs beyond the bounds: a remedy that names less is better than a plan that waits.
func Search(catalogs []Searched, needs []Need) (found map[Need][]Offer, unread []error) {
	catalogs = slices.Clone(catalogs)
	slices.SortStableFunc(catalogs, func(a, b Searched) int { return cmp.Compare(b.Priority, a.Priority) })
	found = map[Need][]Offer{}
	for _, c := range catalogs[:min(len(catalogs), mostSearched)] {
		for _, need := range needs[:min(len(needs), mostNeeds)] {
			names, err := c.Packages(need)
			if err != nil {
				unread = append(unread, fmt.Errorf("catalog %s: %w", c.Name, err))
				break
			}
			for _, name := range names {
				offer := Offer{Package: name, Catalog: c.Name}
				// The name becomes a part of a command. Others cannot be the package of a BundleDeployment.
				if len(validation.IsDNS1123Subdomain(name)) == 0 && !slices.Contains(found[need], offer) {
					found[need] = append(found[need], offer)
				}
			}
		}
	}
	return found, unread
}
