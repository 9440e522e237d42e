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
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/planning"
)

// plan makes the plan, and tries its writes as dry runs. The hashes of the applied objects need the controller's
// key: each existing object counts as changed until the dry run shows that it would not change.
func (p *Previewer) plan(ctx context.Context, result convert.Result) error {
	objects, err := p.trusting(ctx, result)
	if err != nil {
		return err
	}
	made, err := planning.Make(ctx, p.Target, planning.Request{
		Deployment: p.Deployment, Owner: p.owner, Previous: p.withoutCertificates(result.Certificates), Revision: p.Out.Revision,
		Bundle: planning.Bundle{
			Objects: objects, Hooks: spec.Hooks(result), Ranks: spec.Ranks(result), Requires: result.Requirements, Package: result.Package,
			Files: p.files, Applied: p.applied,
		},
		Judge: p.app.Judge, Room: planning.RoomFor(p.Deployment), Neighbours: neighbours{p},
	})
	if err != nil {
		return err
	}
	if p.forecasts, err = made.Forecast(ctx); err != nil {
		return err
	}
	p.made = made.Plan
	if made.TooLarge != nil {
		p.Out.Violations = append(p.Out.Violations, ViolationPreview{Rule: ruleTooLarge, Message: made.TooLarge.Error()})
	}
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

// ruleAccountMissing says that the ServiceAccount does not exist.
const ruleAccountMissing = "AccountMissing"

// ruleTooLarge says that the inventory of the plan cannot be stored.
const ruleTooLarge = "InventoryTooLarge"

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
