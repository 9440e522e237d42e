// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/resolver"
	"github.com/satchel-dev/satchel/internal/resolver/closure"
)

// Dependencies looks up what bundles require. Catalogs of the cluster are compared with what is on the cluster; the others
// are not, since they may be for another one.
type Dependencies struct {
	ctx   context.Context //nolint:containedctx // the search has no context: it is pure
	set   *Set
	known map[string][]resolver.Catalog
}

// Dependencies returns the packages of the set with what their bundles require.
func (s *Set) Dependencies(ctx context.Context) *Dependencies {
	return &Dependencies{ctx: ctx, set: s, known: map[string][]resolver.Catalog{}}
}

// Package implements closure.Source.
func (d *Dependencies) Package(name string) ([]resolver.Catalog, error) {
	if known, found := d.known[name]; found {
		return known, nil
	}
	var all []resolver.Catalog
	for _, c := range d.set.catalogs {
		p, problem, err := c.dependenciesOf(d.ctx, name)
		if err != nil {
			return nil, c.wrap(err)
		}
		all = append(all, resolver.Catalog{Name: c.name, Priority: c.priority, Package: p, Problem: problem})
	}
	d.known[name] = all
	return all, nil
}

// Providers implements closure.Source.
func (d *Dependencies) Providers(kind catalog.Kind) ([]closure.Provider, error) {
	var all []closure.Provider
	for _, c := range d.set.catalogs {
		names, err := c.providers(d.ctx, kind)
		if err != nil {
			return nil, c.wrap(err)
		}
		for _, name := range names {
			all = append(all, closure.Provider{Package: name, Catalog: c.name, Priority: c.priority})
		}
	}
	return all, nil
}

// Serves implements closure.Source.
func (d *Dependencies) Serves(kind catalog.Kind) (bool, error) {
	if d.set.cluster == nil {
		return false, nil
	}
	_, err := d.set.cluster.Mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking up the %s in the cluster: %w", kind, err)
	}
	return true, nil
}

// Installed are the packages of the BundleDeployments of the namespace; none without a cluster.
func (d *Dependencies) Installed() ([]closure.Installed, error) {
	if d.set.cluster == nil {
		return nil, nil
	}
	var list v1alpha1.BundleDeploymentList
	if err := d.set.cluster.Client.List(d.ctx, &list, client.InNamespace(d.set.cluster.Namespace)); err != nil {
		return nil, &kit.AccessError{Verb: "list", Resource: kit.Deployments.Resource, Namespace: d.set.cluster.Namespace, Err: err}
	}
	var installed []closure.Installed
	for i := range list.Items {
		if p := list.Items[i].Status.Healthy.Package; p != nil && list.Items[i].DeletionTimestamp.IsZero() {
			installed = append(installed, closure.Installed{Deployment: list.Items[i].Name, Package: p.Name, Version: p.Version})
		}
	}
	slices.SortFunc(installed, func(a, b closure.Installed) int { return strings.Compare(a.Deployment, b.Deployment) })
	return installed, nil
}
