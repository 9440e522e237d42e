// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/catalogs"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// longestHold is how long after an apply its status may stay unstored while its objects become healthy. Two checks of
// objects that are not watched yet fit into it.
const longestHold = 700 * time.Millisecond

// restoreHeld puts a held status into a deployment that was read, and returns the deployment as it was read. If another client
// changed what is stored, the held status and the note are dropped, and everything is compared.
func (r *Reconciler) restoreHeld(object *v1alpha1.BundleDeployment) (stored *v1alpha1.BundleDeployment, held *stage.HeldStatus) {
	stored = object.DeepCopy()
	key := client.ObjectKeyFromObject(object)
	note := r.memory.Recall(key, object.UID)
	switch {
	case note.Held == nil || pipeline.OlderVersion(object.ResourceVersion, note.Version):
		return stored, nil
	case !note.Held.Restore(object):
		r.memory.Forget(key)
		return stored, nil
	}
	return stored, note.Held
}

// hold keeps the status of this reconcile in memory if its apply succeeded, only health is missing, and the next check of that is
// due within longestHold after the apply. It returns false if the status has to be stored now.
func (r *Reconciler) hold(s *state, err error) bool {
	var next time.Duration
	if s.canWait(err) {
		next = s.settling(nil).Pause(s.note.Applying.Pauses)
	}
	since := s.Now
	if s.held != nil {
		since = s.held.Since
	}
	if next <= 0 || s.Now.Add(next).Sub(since) > longestHold {
		return false
	}
	s.note.Held = &stage.HeldStatus{Status: *s.Object.Status.DeepCopy(), Stored: *s.Stored.Status.DeepCopy(), Since: since, Announced: s.settled.Announced}
	return true
}

// canWait tells whether nothing but the health of what was just applied is missing.
func (s *state) canWait(err error) bool {
	applied := s.held != nil || s.resolved.Due && s.delivered.Complete && s.decided.Writes()
	return applied && err == nil && s.undisturbed() && s.becomesHealthy()
}

// undisturbed tells that nothing else happened in this reconcile than the apply of the revision.
func (s *state) undisturbed() bool {
	return s.kept == nil && s.delivered.Cut == stage.Uncut && s.delivered.WaitsFor == "" && len(s.rendered.Hooks) == 0 &&
		s.delivered.Repaired == nil && !s.settled.RejectedNow && s.resolved.Rejected == nil && !catalogs.Advanced(s.Before, s.Object)
}

// becomesHealthy tells that some objects are not healthy yet, and that this is no failure.
func (s *state) becomesHealthy() bool {
	health, note := s.settled.Health, s.note.Health
	return health != nil && !health.Healthy() && !health.Failed() && note.UnhealthySince.IsZero() && !note.Missing
}
