// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"

	"github.com/satchel-dev/satchel/internal/controller/rollout/inputs"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// hashOf is the hash of the spec of a cluster in a revision, with the present content of its inputs.
func (s *state) hashOf(v *rendered.Revision, cluster *revision.Cluster) (string, error) {
	return s.memory.rendered.Hash(v, cluster, s.memory.own.Of)
}

// readOwnInputs reads the inputs that only one cluster has, where revisions have such.
func (r *Reconciler) readOwnInputs(ctx context.Context, s *state, revisions ...*rendered.Revision) error {
	isNeeded := false
	for _, v := range revisions {
		if v == nil || !v.HasOwnInputs {
			continue
		}
		isNeeded = true
		for name := range s.clusters {
			cluster := s.clusters[name]
			_, _ = s.hashOf(v, &cluster) // asks for them; errors are reported with the facts
		}
	}
	if !isNeeded {
		return nil
	}
	keeper, err := r.inputs(s)
	if err != nil {
		return err
	}
	return s.memory.own.Read(ctx, keeper, s.now, inputsPause)
}

// copyOwnInputs copies the inputs that only one cluster has, as they are now, for a start of it.
func (r *Reconciler) copyOwnInputs(ctx context.Context, s *state, cluster string, child *revision.Child) (rendered.DigestsOf, error) {
	if len(child.Inputs) == 0 {
		return nil, nil
	}
	keeper, err := r.inputs(s)
	if err != nil {
		return nil, err
	}
	read, err := keeper.Read(ctx, child.Inputs)
	if lacks := (*inputs.MissingError)(nil); errors.As(err, &lacks) {
		s.memory.own.Forget(child.Inputs)
	}
	if err != nil {
		return nil, err
	}
	s.memory.own.Note(read, s.now)
	var digests []string
	for i := range read {
		digests = append(digests, read[i].Digest)
	}
	err = keeper.CopyOwn(ctx, s.object.Name, cluster, child, read)
	return func([]revision.FrozenInput) ([]string, error) { return digests, nil }, err
}
