// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/dependents"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/cli/catalogs"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
)

// packages are those that other deployments of the namespace have installed.
func (p *Previewer) packages(ctx context.Context) []requirement.Package {
	return p.others(ctx).Packages
}

// others are the other deployments of the namespace: what they have installed, and what they require.
func (p *Previewer) others(ctx context.Context) dependents.Others {
	var list v1alpha1.BundleDeploymentList
	if err := p.cluster.Client.List(ctx, &list, client.InNamespace(p.Deployment.Namespace)); err != nil {
		p.note("packages that other deployments have installed, and what they require, were not looked for: %v", err)
		return dependents.Others{}
	}
	return dependents.Others{
		Dependents: spec.Dependents(list.Items, p.Deployment, p.previous.Target), Packages: spec.Packages(list.Items, p.Deployment, p.previous.Target),
	}
}

// protectDependents adds to the plan what it would take from other deployments of the namespace.
func (p *Previewer) protectDependents(ctx context.Context, policy plan.Enforcement, contains convert.Package) error {
	change := spec.ChangeOf(p.made, p.Deployment, p.Out.Revision, contains)
	list := func(ctx context.Context) (dependents.Others, error) { return p.others(ctx), nil }
	_, err := change.Judge(ctx, p.Target.Kinds(), policy, list, &p.made)
	return err
}

// offers are the packages of catalogs that provide what the plan lacks.
func (p *Previewer) offers(ctx context.Context, needs []requirement.Need) map[requirement.Need][]requirement.Offer {
	if len(needs) == 0 {
		return nil
	}
	found, unread := catalogs.Offers(ctx, p.app, p.Deployment.Namespace, needs)
	for _, err := range unread {
		p.note("not searched for a package that provides what is missing: %v", err)
	}
	return found
}
