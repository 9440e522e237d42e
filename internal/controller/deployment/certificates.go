// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/convert"
)

// issuance holds the certificates that certify found on the cluster and those that it
// issued.
type issuance struct {
	// found are the live Secrets that provably belong to the deployment.
	found map[inventory.ID]*unstructured.Unstructured
	// hidden Secrets may not be read.
	hidden map[inventory.ID]bool
	// set is the desired set of certificates.
	set certificate.Set
	// secrets are those of set.
	secrets map[inventory.ID]*unstructured.Unstructured
}

// certify reads the certificates that the objects mount and trust, and issues in memory
// those that are missing or due. Nothing is written before the plan is executed.
func (r *Reconciler) certify(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due || len(s.rendered.wanted) == 0 {
		return pipeline.Continue, nil
	}
	made, err := findCertificates(ctx, s)
	if err == nil {
		err = r.issue(ctx, s, made)
	}
	if err != nil {
		return pipeline.Stop, err
	}
	s.rendered.issued = made
	return pipeline.Continue, nil
}

// authorityID is the Secret of the certificates' authority.
func (s *state) authorityID() inventory.ID {
	return certificate.AuthorityIn(s.owner, cmp.Or(s.home, s.owner.Namespace))
}

// certificateIDs are the Secrets that the wanted certificates need.
func certificateIDs(authority inventory.ID, wanted []convert.Certificate) []inventory.ID {
	if len(wanted) == 0 {
		return nil
	}
	ids := []inventory.ID{authority}
	for _, one := range wanted {
		ids = append(ids, certificate.Request(one).ID())
	}
	return ids
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// findCertificates reads the Secrets by name, as the tenant. Secrets that do not exist,
// may not be read, or do not belong to the deployment count as absent: the plan reports
// them.
func findCertificates(ctx context.Context, s *state) (*issuance, error) {
	type answer struct {
		secret *unstructured.Unstructured
		err    error
	}
	ids := certificateIDs(s.authorityID(), s.rendered.wanted)
	answers := parallel.Each(ctx, len(ids), ids, func(ctx context.Context, id inventory.ID) answer {
		secret, err := s.resolved.client.Get(ctx, tenant.Ref{Resource: secrets, Namespace: id.Namespace, Name: id.Name})
		return answer{secret, err}
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("reading the certificates: %w", err)
	}
	made := &issuance{found: map[inventory.ID]*unstructured.Unstructured{}, hidden: map[inventory.ID]bool{}}
	for i, id := range ids {
		switch err := answers[i].err; {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			made.hidden[id] = true
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", id, err)
		case s.owns(answers[i].secret):
			made.found[id] = answers[i].secret
		}
	}
	return made, nil
}

// owns tells whether an object provably belongs to the deployment, by the rule of the
// plan: every other object is a collision.
func (s *state) owns(object *unstructured.Unstructured) bool {
	live := plan.LiveOf(object, s.owner)
	entry, _ := s.listed.inventory.Get(inventory.IDOf(object))
	taken := !live.Owner.IsZero() && live.Owner != s.owner && slices.Contains(live.Managers, live.Owner.Manager())
	return entry.Confirmed() && !taken || live.Ours(s.owner) && !live.Fields.IsZero()
}

// issue computes the contents of the Secrets. A new CA signs only once every object on
// the cluster trusts it.
func (r *Reconciler) issue(ctx context.Context, s *state, made *issuance) error {
	in := certificate.Input{Now: s.now, Entropy: r.Entropy, Owner: s.owner, Home: s.home, Serving: made.found, Wanted: requests(s.rendered.wanted)}
	var err error
	if in.Authority, err = s.genuine(ctx, made.found[s.authorityID()]); err != nil {
		return err
	}
	set, err := certificate.Make(in)
	if err == nil && set.Waiting {
		if in.Trusted, err = s.trustedBy(ctx, set.Bundle); in.Trusted {
			set, err = certificate.Make(in)
		}
	}
	if err != nil {
		return fmt.Errorf("issuing certificates: %w", err)
	}
	made.set, made.secrets = set, map[inventory.ID]*unstructured.Unstructured{}
	for _, secret := range set.Secrets {
		made.secrets[inventory.IDOf(secret)] = secret
	}
	return nil
}

func requests(wanted []convert.Certificate) []certificate.Request {
	asked := make([]certificate.Request, 0, len(wanted))
	for _, one := range wanted {
		asked = append(asked, certificate.Request(one))
	}
	return asked
}

// genuine keeps of the CA's Secret what certainly belongs to this deployment: what was
// applied last, or else what the cluster trusts already. Labels and field manager names
// prove nothing: every writer of a Secret chooses them.
func (s *state) genuine(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil || s.asRecorded(live) {
		return live, nil
	}
	trusting, _, err := s.liveTrusting(ctx)
	if err != nil {
		return nil, err
	}
	return certificate.Known(live, trusting), nil
}

// asRecorded tells whether a certificate Secret holds what was applied last.
func (s *state) asRecorded(live *unstructured.Unstructured) bool {
	bare := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": live.Object["type"], "data": live.Object["data"],
	}}
	bare.SetNamespace(live.GetNamespace())
	bare.SetName(live.GetName())
	bare.SetLabels(map[string]string{plan.LabelCertificate: live.GetLabels()[plan.LabelCertificate]})
	entry, _ := s.listed.inventory.Get(inventory.IDOf(live))
	applied, err := plan.Completion{Owner: s.owner, HashKey: s.hashKey}.Complete(bare, plan.Kind{Namespaced: true})
	return err == nil && entry.Confirmed() && applied.Rendered == entry.Rendered
}

// trusts tells whether an object trusts one of the wanted certificates.
func (s *state) trusts(object *unstructured.Unstructured) bool {
	return certificate.Trusts(object, requests(s.rendered.wanted))
}

// liveTrusting reads the objects on the cluster that trust the certificates; all tells
// whether every existing one could be read.
func (s *state) liveTrusting(ctx context.Context) (found []*unstructured.Unstructured, all bool, err error) {
	all = true
	for _, object := range s.rendered.desired {
		if !s.trusts(object) {
			continue
		}
		live, err := s.resolved.client.Get(ctx, tenant.Ref{Resource: certificate.Resource(object), Name: object.GetName()})
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
func (s *state) trustedBy(ctx context.Context, bundle []byte) (bool, error) {
	found, all, err := s.liveTrusting(ctx)
	return all && !slices.ContainsFunc(found, func(live *unstructured.Unstructured) bool {
		return !certificate.Carries(live, bundle)
	}), err
}

// unseen refuses to overwrite Secrets that could not be read when the certificates were
// issued but can be read now: their contents have to be known first.
func (s *state) unseen() error {
	if s.rendered.issued == nil {
		return nil
	}
	for _, action := range s.decided.plan.Actions() {
		if s.rendered.issued.hidden[action.ID] && action.Verb != plan.Create {
			return fmt.Errorf("%s could not be read a moment ago: trying again", action.ID)
		}
	}
	return nil
}

// planned are the objects to apply: those of the bundle, with the CA injected where
// they trust it, and the certificate Secrets.
func (s *state) planned() []*unstructured.Unstructured {
	if s.rendered.issued == nil {
		return s.rendered.desired
	}
	objects := slices.Clone(s.rendered.issued.set.Secrets)
	for _, object := range s.rendered.desired {
		if s.trusts(object) {
			object = certificate.Inject(object, s.rendered.issued.set.Bundle)
		}
		objects = append(objects, object)
	}
	return objects
}

// bare returns the objects of the plan as the bundle has them, without what certify
// added: that is read from the cluster, and no key leaves it.
func (s *state) bare(objects []plan.Object) ([]*unstructured.Unstructured, error) {
	original := map[inventory.ID]*unstructured.Unstructured{}
	for _, object := range s.rendered.desired {
		if s.trusts(object) {
			original[inventory.IDOf(object)] = object
		}
	}
	var all []*unstructured.Unstructured
	for _, object := range objects {
		if s.rendered.issued != nil && s.rendered.issued.secrets[object.ID] != nil {
			continue
		}
		desired := object.Desired
		if bare := original[object.ID]; bare != nil {
			completed, err := plan.Completion{Owner: s.owner}.Complete(bare, object.Kind)
			if err != nil {
				return nil, err
			}
			desired = completed.Desired
		}
		all = append(all, desired)
	}
	return all, nil
}
