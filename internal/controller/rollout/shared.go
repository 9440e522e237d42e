// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/rollout/inputs"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// inputsPause is the least time between two readings of the inputs that all clusters share.
const inputsPause = 10 * time.Second

// sharedInputs are the inputs that all clusters share, as they were read last, for a generation of the spec.
type sharedInputs struct {
	read       []inputs.Input
	generation int64
	at         time.Time
}

// inputs reads and copies inputs as the ServiceAccount of the template.
func (r *Reconciler) inputs(s *state) (inputs.Keeper, error) {
	account, err := revision.AccountOf(&s.object.Spec)
	as := tenant.Identity{Namespace: s.object.Namespace, ServiceAccount: account}
	return inputs.Keeper{Tenants: r.Clusters.Tenants, Account: as, Manager: FieldManager}, err
}

// readInputs reads the inputs that all clusters share. Without them the rollout goes on with the revision that it has.
func (r *Reconciler) readInputs(ctx context.Context, s *state) error {
	wanted := revision.SharedInputs(&s.object.Spec)
	known := &s.memory.inputs
	if len(wanted) == 0 {
		*known = sharedInputs{}
		return nil
	}
	if known.generation == s.object.Generation && s.now.Before(known.at.Add(inputsPause)) {
		return nil
	}
	keeper, err := r.inputs(s)
	if err != nil {
		return err
	}
	read, err := keeper.Read(ctx, wanted)
	if lacks := (*inputs.MissingError)(nil); errors.As(err, &lacks) {
		s.awaits = waitsFor(v1alpha1.ReasonInputNotFound, "%w", lacks)
		return nil
	}
	if err == nil {
		*known = sharedInputs{read: read, generation: s.object.Generation, at: s.now}
	}
	return err
}

// copyInputs writes the copies of a revision before it is stored.
func (r *Reconciler) copyInputs(ctx context.Context, s *state, found *rendered.Revision) error {
	if len(found.Data.Inputs) == 0 {
		return nil
	}
	keeper, err := r.inputs(s)
	if err != nil {
		return err
	}
	return keeper.Copy(ctx, s.object.Name, found.Name, s.memory.inputs.read)
}

// inputFailure is the failure of copies that cannot be written.
func inputFailure(err error) error {
	if lacks := (*inputs.MissingError)(nil); errors.As(err, &lacks) {
		return waitsFor(v1alpha1.ReasonInputNotFound, "%w", lacks)
	}
	return err
}
