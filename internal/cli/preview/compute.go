// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
)

// plan observes the cluster, plans, and tries the writes as dry runs. The hashes of the applied objects need the controller's
// key: each existing object counts as changed until the dry run shows that it would not change.
func (p *Previewer) plan(ctx context.Context, result convert.Result) error {
	asked, err := spec.Observing(p.Deployment, false)
	if err != nil {
		return err
	}
	asked.Judge, asked.Returning = p.app.Judge, spec.Returning(p.Deployment, p.Out.Revision)
	asked.Owner, asked.Previous, asked.Ranks, asked.Hooks = p.owner, p.withoutCertificates(result.Certificates), spec.Ranks(result), spec.Hooks(result)
	if asked.Desired, err = p.trusting(ctx, result); err != nil {
		return err
	}
	asked.Requirements = spec.Requirements(result.Requirements)
	if len(asked.Requirements) > 0 {
		asked.Packages = p.packages(ctx)
	}
	in, err := observe.Cluster(ctx, p.Target, asked)
	if err != nil {
		return err
	}
	in.Facts.Offers = p.offers(ctx, spec.Needs(in))
	in.Withheld = leftout.Hold(p.files, p.applied(ctx), in.Previous)
	p.made = plan.Make(in)
	if err := p.protectDependents(ctx, asked.RequirementsPolicy, result.Package); err != nil {
		return err
	}
	if p.forecasts, err = dryrun.Preview(ctx, p.Target, p.made, dryrun.Options{Recreate: asked.Pruning.Recreates}); err != nil {
		return err
	}
	p.settle()
	return nil
}

// withoutCertificates leaves out the Secrets that the controller issues for the webhooks of the bundle: they are neither
// shown nor pruned.
func (p *Previewer) withoutCertificates(wanted []convert.Certificate) inventory.Inventory {
	if len(wanted) == 0 {
		return p.previous
	}
	home := p.owner.Namespace
	if effective.IsRemote(p.Deployment.Spec.Target.ClusterReference) {
		home = effective.InstallNamespace(p.Deployment)
	}
	ids := []inventory.ID{certificate.AuthorityIn(p.owner, home)}
	for _, one := range wanted {
		ids = append(ids, certificate.Request(one).ID())
		p.Out.Certificates = append(p.Out.Certificates, "Secret "+one.Namespace+"/"+one.Secret)
	}
	return p.previous.Without(ids...)
}

// trusting returns the objects of the bundle with the CA bundles that they have on the cluster already.
func (p *Previewer) trusting(ctx context.Context, result convert.Result) ([]*unstructured.Unstructured, error) {
	requests := make([]certificate.Request, 0, len(result.Certificates))
	for _, one := range result.Certificates {
		requests = append(requests, certificate.Request(one))
	}
	objects := slices.Clone(result.Objects)
	for i, object := range objects {
		if !certificate.Trusts(object, requests) {
			continue
		}
		live, err := p.Target.Get(ctx, tenant.Ref{Resource: certificate.Resource(object), Name: object.GetName()})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", inventory.IDOf(object), err)
		case certificate.Bundle(live) != nil:
			objects[i] = certificate.Inject(object, certificate.Bundle(live))
		}
	}
	return objects, nil
}

// settle adds the results of the dry runs to the plan.
func (p *Previewer) settle() {
	var recreated []inventory.ID
	for i := range p.made.Stages {
		for j := range p.made.Stages[i].Actions {
			action := &p.made.Stages[i].Actions[j]
			forecast := p.forecasts[action.ID]
			if forecast.Recreate {
				recreated = append(recreated, action.ID)
			}
			if forecast.After == nil || forecast.Live == nil {
				continue
			}
			changes, _ := fields.Diff(forecast.Live, forecast.After)
			switch {
			case len(changes) == 0 && action.Verb != plan.Adopt:
				action.Verb, action.Reason = plan.Unchanged, ""
			case action.Verb == plan.Update:
				action.Reason = "differs from the bundle"
			}
		}
	}
	p.made.Recreates(recreated)
}

// ruleAccountMissing says that the ServiceAccount does not exist.
const ruleAccountMissing = "AccountMissing"

// AsAccount is a client that impersonates the deployment's ServiceAccount, or the reason why there is none.
func (p *Previewer) AsAccount(ctx context.Context, account string) (*tenant.Client, string, error) {
	if p.Target != p.User {
		p.Out.Account.Name = p.Target.Identity().String()
		return p.Target, "", nil
	}
	return p.asLocalAccount(ctx, account)
}

// asLocalAccount is AsAccount on the cluster of the deployment.
func (p *Previewer) asLocalAccount(ctx context.Context, account string) (*tenant.Client, string, error) {
	id := tenant.Identity{Namespace: p.Deployment.Namespace, ServiceAccount: account}
	if p.Config.Impersonate.UserName != "" {
		return nil, "with --as no other user can be impersonated", nil
	}
	may, err := p.User.Allowed(ctx, authorizationv1.ResourceAttributes{
		Verb: "impersonate", Resource: "serviceaccounts", Namespace: id.Namespace, Name: account,
	})
	if err != nil {
		return nil, "", fmt.Errorf("checking your permissions: %w", err)
	}
	if !may {
		return nil, "you may not impersonate it", nil
	}
	pool, err := tenant.NewPool(p.Config, tenant.Options{User: p.User})
	if err != nil {
		return nil, "", err
	}
	exists, err := pool.AccountExists(ctx, id)
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case err == nil && !exists:
		p.Out.Violations = append(p.Out.Violations, ViolationPreview{
			Rule: ruleAccountMissing, Message: fmt.Sprintf("ServiceAccount %q does not exist", id), Remedy: "create it, or correct spec.serviceAccountName",
		})
		return nil, "it does not exist", nil
	}
	client, err := pool.Client(id)
	if err != nil {
		return nil, "", err
	}
	return client.For(p.Deployment.Name), "", nil
}
