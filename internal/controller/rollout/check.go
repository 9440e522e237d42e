// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/announce"
	"github.com/satchel-dev/satchel/internal/controller/rollout/preflight"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// checkPause is the least time between two checks of a revision that was refused.
const checkPause = 30 * time.Second

// checkRevision has the API server check the BundleDeployments of a revision before any of them is started; those of the current revision
// were. While one is refused the rollout goes on with the revision that it has.
func (r *Reconciler) checkRevision(ctx context.Context, s *state) (pipeline.Outcome, error) {
	status := &s.object.Status
	if s.wanted == nil || is(status.UpdateRevision, s.wanted) || is(status.CurrentRevision, s.wanted) {
		return pipeline.Continue, nil
	}
	last := s.memory.checked
	isSame := last.Revision == s.wanted.Name
	if !isSame || last.Refused != nil && !s.now.Before(last.At.Add(checkPause)) {
		refused, err := r.preflight(ctx, s)
		if err != nil {
			return pipeline.Stop, err
		}
		s.memory.checked = preflight.Result{Revision: s.wanted.Name, At: s.now, Refused: refused}
	}
	refused := s.memory.checked.Refused
	if refused == nil {
		return pipeline.Continue, nil
	}
	s.again = checkPause
	s.refused = stalledBy(v1alpha1.ReasonInvalidChild, "revision %s (%s) is not started: %w; correct spec.template or spec.overrides", s.wanted.Name, s.wanted.Revision, refused)
	if !isSame {
		announce.Refused(r.Events, s.object, s.refused.Error())
	}
	return pipeline.Continue, nil
}

func (r *Reconciler) preflight(ctx context.Context, s *state) (*preflight.RefusedError, error) {
	of, err := r.needed(ctx, s, s.wanted.Name)
	if err != nil {
		return nil, err
	}
	err = preflight.Check(ctx, r.children(s), of, s.inWaves())
	if refused := (*preflight.RefusedError)(nil); errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// is tells whether a revision is the wanted one.
func is(one, wanted *v1alpha1.RolloutRevision) bool { return one != nil && one.Digest == wanted.Digest }

// inWaves are the clusters that a wave has.
func (s *state) inWaves() map[string]revision.Cluster {
	found := map[string]revision.Cluster{}
	for name, cluster := range s.clusters {
		if s.strategy.WaveOf(cluster.Labels) != rollout.Excluded {
			found[name] = cluster
		}
	}
	return found
}
