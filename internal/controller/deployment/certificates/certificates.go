// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/completion"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/convert"
)

// Issuance holds the certificates that certify found on the cluster and those that it
// issued.
type Issuance struct {
	// Found are the live Secrets that provably belong to the deployment.
	Found map[inventory.ID]*unstructured.Unstructured
	// hidden Secrets may not be read.
	Hidden map[inventory.ID]bool
	// Set is the desired set of certificates.
	Set certificate.Set
	// secrets are those of set.
	secrets map[inventory.ID]*unstructured.Unstructured
}

// Input is what certificates are found and issued from.
type Input struct {
	Client  *tenant.Client
	Owner   inventory.Owner
	Home    string // namespace of the CA, if it is not the deployment's
	Listed  inventory.Inventory
	HashKey []byte
	// Desired are the objects of the revision, and Wanted the certificates that they mount and trust.
	Desired []*unstructured.Unstructured
	Wanted  []convert.Certificate
	Now     time.Time
	Entropy io.Reader
}

// Prepare finds the certificates on the cluster, and issues in memory those that are missing or due.
func (c Input) Prepare(ctx context.Context) (*Issuance, error) {
	made, err := c.find(ctx)
	if err == nil {
		err = c.issue(ctx, made)
	}
	return made, err
}

// authority is the Secret of the certificates' authority.
func (c Input) authority() inventory.ID { return AuthorityOf(c.Owner, c.Home) }

// AuthorityOf is the Secret of the authority of a deployment. home is the namespace of the CA, if it is not the deployment's.
func AuthorityOf(owner inventory.Owner, home string) inventory.ID {
	return certificate.AuthorityIn(owner, cmp.Or(home, owner.Namespace))
}

// IDs are the Secrets that the wanted certificates need.
func IDs(authority inventory.ID, wanted []convert.Certificate) []inventory.ID {
	if len(wanted) == 0 {
		return nil
	}
	ids := []inventory.ID{authority}
	for _, one := range wanted {
		ids = append(ids, certificate.Request(one).ID())
	}
	return ids
}

// Secrets is the resource in which certificates are kept.
var Secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// find reads the Secrets by name, as the tenant. Secrets that do not exist,
// may not be read, or do not belong to the deployment count as absent: the plan reports
// them.
func (c Input) find(ctx context.Context) (*Issuance, error) {
	type answer struct {
		secret *unstructured.Unstructured
		err    error
	}
	ids := IDs(c.authority(), c.Wanted)
	answers := parallel.Each(ctx, len(ids), ids, func(ctx context.Context, id inventory.ID) answer {
		secret, err := c.Client.Get(ctx, tenant.Ref{Resource: Secrets, Namespace: id.Namespace, Name: id.Name})
		return answer{secret, err}
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("reading the certificates: %w", err)
	}
	made := &Issuance{Found: map[inventory.ID]*unstructured.Unstructured{}, Hidden: map[inventory.ID]bool{}}
	for i, id := range ids {
		switch err := answers[i].err; {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			made.Hidden[id] = true
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", id, err)
		case c.owns(answers[i].secret):
			made.Found[id] = answers[i].secret
		}
	}
	return made, nil
}

// owns tells whether an object provably belongs to the deployment, by the rule of the
// plan: every other object is a collision.
func (c Input) owns(object *unstructured.Unstructured) bool {
	live := ownership.LiveOf(object, c.Owner)
	entry, _ := c.Listed.Get(inventory.IDOf(object))
	taken := !live.Owner.IsZero() && live.Owner != c.Owner && slices.Contains(live.Managers, live.Owner.Manager())
	return entry.Confirmed() && !taken || live.Ours(c.Owner) && !live.Fields.IsZero()
}

// issue computes the contents of the Secrets. A new CA signs only once every object on
// the cluster trusts it.
func (c Input) issue(ctx context.Context, made *Issuance) error {
	in := certificate.Input{Now: c.Now, Entropy: c.Entropy, Owner: c.Owner, Home: c.Home, Serving: made.Found, Wanted: Requests(c.Wanted)}
	var err error
	if in.Authority, err = c.genuine(ctx, made.Found[c.authority()]); err != nil {
		return err
	}
	set, err := certificate.Make(in)
	if err == nil && set.Waiting {
		if in.Trusted, err = c.trustedBy(ctx, set.Bundle); in.Trusted {
			set, err = certificate.Make(in)
		}
	}
	if err != nil {
		return fmt.Errorf("issuing certificates: %w", err)
	}
	made.Set, made.secrets = set, map[inventory.ID]*unstructured.Unstructured{}
	for _, secret := range set.Secrets {
		made.secrets[inventory.IDOf(secret)] = secret
	}
	return nil
}

// Requests are the certificates that a bundle wants, as the issuer takes them.
func Requests(wanted []convert.Certificate) []certificate.Request {
	asked := make([]certificate.Request, 0, len(wanted))
	for _, one := range wanted {
		asked = append(asked, certificate.Request(one))
	}
	return asked
}

// genuine keeps of the CA's Secret what certainly belongs to this deployment: what was
// applied last, or else what the cluster trusts already. Labels and field manager names
// prove nothing: every writer of a Secret chooses them.
func (c Input) genuine(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil || c.asRecorded(live) {
		return live, nil
	}
	trusting, _, err := c.liveTrusting(ctx)
	if err != nil {
		return nil, err
	}
	return certificate.Known(live, trusting), nil
}

// asRecorded tells whether a certificate Secret holds what was applied last.
func (c Input) asRecorded(live *unstructured.Unstructured) bool {
	bare := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": live.Object["type"], "data": live.Object["data"],
	}}
	bare.SetNamespace(live.GetNamespace())
	bare.SetName(live.GetName())
	bare.SetLabels(map[string]string{plan.LabelCertificate: live.GetLabels()[plan.LabelCertificate]})
	entry, _ := c.Listed.Get(inventory.IDOf(live))
	applied, err := completion.Settings{Owner: c.Owner, Hasher: inventory.NewHasher(c.HashKey)}.Complete(bare, plan.Kind{Namespaced: true})
	return err == nil && entry.Confirmed() && applied.Rendered == entry.Rendered
}

// liveTrusting reads the objects on the cluster that trust the certificates; all tells
// whether every existing one could be read.
func (c Input) liveTrusting(ctx context.Context) (found []*unstructured.Unstructured, all bool, err error) {
	all = true
	for _, object := range c.Desired {
		if !certificate.Trusts(object, Requests(c.Wanted)) {
			continue
		}
		live, err := c.Client.Get(ctx, tenant.Ref{Resource: certificate.Resource(object), Name: object.GetName()})
		switch {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			all = false
		case err != nil:
			return nil, false, fmt.Errorf("reading %s: %w", inventory.IDOf(object), err)
		default:
			found = append(found, live)
		}
	}
	return found, all, nil
}

// trustedBy tells whether every object on the cluster that trusts the certificates
// carries the bundle.
func (c Input) trustedBy(ctx context.Context, bundle []byte) (bool, error) {
	found, all, err := c.liveTrusting(ctx)
	return all && !slices.ContainsFunc(found, func(live *unstructured.Unstructured) bool {
		return !certificate.Carries(live, bundle)
	}), err
}

// Unseen refuses to overwrite Secrets that could not be read when the certificates were
// issued but can be read now: their contents have to be known first.
func (i *Issuance) Unseen(planned *plan.Plan) error {
	if i == nil {
		return nil
	}
	for action := range planned.Actions() {
		if i.Hidden[action.ID] && action.Verb != plan.Create {
			return fmt.Errorf("%s could not be read a moment ago: trying again", action.ID)
		}
	}
	return nil
}

// Complete returns the objects to apply: those of the bundle, with the CA injected where
// they trust it, and the certificate Secrets.
func (i *Issuance) Complete(desired []*unstructured.Unstructured, wanted []convert.Certificate) []*unstructured.Unstructured {
	if i == nil {
		return desired
	}
	objects := slices.Clone(i.Set.Secrets)
	for _, object := range desired {
		if certificate.Trusts(object, Requests(wanted)) {
			object = certificate.Inject(object, i.Set.Bundle)
		}
		objects = append(objects, object)
	}
	return objects
}

// Bare returns the objects of the plan as the bundle has them, without what certify
// added: that is read from the cluster, and no key leaves it.
func (i *Issuance) Bare(objects []plan.Object, owner inventory.Owner, desired []*unstructured.Unstructured, wanted []convert.Certificate) ([]*unstructured.Unstructured, error) {
	original := map[inventory.ID]*unstructured.Unstructured{}
	for _, object := range desired {
		if certificate.Trusts(object, Requests(wanted)) {
			original[inventory.IDOf(object)] = object
		}
	}
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		if i.Secret(object.ID) != nil {
			continue
		}
		content := object.Desired
		if bare := original[object.ID]; bare != nil {
			completed, err := completion.Settings{Owner: owner}.Complete(bare, object.Kind)
			if err != nil {
				return nil, err
			}
			content = completed.Desired
		}
		all = append(all, content)
	}
	return all, nil
}

// Secret is the Secret of a certificate; nil for other objects.
func (i *Issuance) Secret(id inventory.ID) *unstructured.Unstructured {
	if i == nil {
		return nil
	}
	return i.secrets[id]
}
