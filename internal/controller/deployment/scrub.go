// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/controller/step"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/values"
)

// scrubs hold what must not be shown of the inputs of each deployment: what came from Secrets, and what did before them.
// The zero value is ready for use.
type scrubs struct {
	mu sync.Mutex
	of map[types.NamespacedName]*values.Scrubber
}

// learn keeps what the Secrets among the inputs hold, beside what they held before: objects and messages of the last revision
// may still have that.
func (c *scrubs) learn(d *v1alpha1.BundleDeployment, needed []spec.Input, contents spec.Contents) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh, key := spec.Scrubber(d, needed, contents), client.ObjectKeyFromObject(d)
	if c.of == nil {
		c.of = map[types.NamespacedName]*values.Scrubber{}
	}
	if fresh.Empty() {
		return
	}
	fresh.After(c.of[key])
	c.of[key] = fresh
}

// find gives what must not be shown of a deployment; nil when there is nothing.
func (c *scrubs) find(key types.NamespacedName) *values.Scrubber {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[key]
}

func (c *scrubs) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, key)
}

// scrub takes what came from Secrets out of all that a reconcile is going to tell: before it is compared with what was told
// before, so that it stays the same. It returns the failure without it.
func (r *Reconciler) scrub(s *state, err error) error {
	scrubber := r.scrubs.find(client.ObjectKeyFromObject(s.object))
	if scrubber.Empty() {
		return err
	}
	s.scrub(scrubber)
	if s.kept != nil {
		s.kept.scrub(scrubber)
	}
	s.careErr = scrubFailure(scrubber, s.careErr)
	return scrubFailure(scrubber, err)
}

// scrubFailure words a failure anew, with the same step and the same consequences.
func scrubFailure(scrubber *values.Scrubber, err error) error {
	if err == nil || scrubber.Error(err) == err { //nolint:errorlint // the very same one
		return err
	}
	f := judge(err)
	f.err = scrubber.Error(f.err)
	var failed *step.Error
	if errors.As(err, &failed) {
		return &step.Error{Step: failed.Step, Err: f}
	}
	return f
}

func (s *state) scrub(scrubber *values.Scrubber) {
	all := func(texts []string) {
		for i := range texts {
			texts[i] = scrubber.Text(texts[i])
		}
	}
	all(s.warnings)
	all(s.drift)
	all(s.notRenewed)
	s.waitsFor, s.hookWaits = scrubber.Text(s.waitsFor), scrubber.Text(s.hookWaits)
	if s.health != nil {
		for i := range s.health.Unhealthy {
			s.health.Unhealthy[i].Message = scrubber.Text(s.health.Unhealthy[i].Message)
		}
	}
	if s.plan != nil {
		all(s.plan.Warnings)
	}
	if s.pruned != nil {
		all(s.pruned.Notes)
	}
	for _, result := range []*apply.Result{s.applied, s.mended.result()} {
		if result != nil {
			all(result.Warnings)
		}
	}
	if s.consent != nil {
		all(s.consent.asks)
	}
}
