// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// offersTimeout bounds the time for all look-ups of one plan.
const offersTimeout = 10 * time.Second

// Offers are the packages of the BundleCatalogs that a namespace sees which provide what a plan lacks, as the controller finds them.
// The errors are about catalogs that cannot be read, and are left out.
func Offers(ctx context.Context, a *kit.App, namespace string, needs []requirement.Need) (map[requirement.Need][]requirement.Offer, []error) {
	ctx, cancel := context.WithTimeout(ctx, offersTimeout)
	defer cancel()
	r := &clusterReader{app: a, flags: &Flags{system: kit.SystemNamespace}, namespace: namespace}
	seen, err := r.visible(ctx)
	if err != nil {
		return nil, []error{err}
	}
	var searched []requirement.Searched
	var unread []error
	for _, s := range seen {
		if s.Shadowed || s.Status.Content == nil {
			continue
		}
		of, err := newServed(a, r.explorer.Config, s.BundleCatalog)
		if err != nil {
			unread = append(unread, err)
			continue
		}
		one := &search{of: of}
		searched = append(searched, requirement.Searched{Name: s.Name, Priority: s.Spec.Priority, Packages: func(need requirement.Need) ([]string, error) {
			return one.packages(ctx, need)
		}})
	}
	found, failed := requirement.Search(searched, needs)
	return found, append(unread, failed...)
}

// search looks up packages in one catalog.
type search struct {
	of    content
	names []string // of all packages, once one was looked up
}

// packages are those that provide a kind, or the one that is needed, if the catalog has it.
func (s *search) packages(ctx context.Context, need requirement.Need) ([]string, error) {
	if need.Package == "" {
		return s.of.providers(ctx, catalog.Kind{Group: need.Kind.Group, Version: need.Kind.Version, Kind: need.Kind.Kind})
	}
	if s.names == nil {
		names, _, err := s.of.names(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing its packages: %w", err)
		}
		s.names = names
	}
	if _, found := slices.BinarySearch(s.names, need.Package); !found {
		return nil, nil
	}
	return []string{need.Package}, nil
}
