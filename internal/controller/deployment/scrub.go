// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/controller/step"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/values"
	"github.com/satchel-dev/satchel/internal/visible"
)

// scrubs hold what must not be shown of the inputs of each deployment: what came from Secrets, and what did before them.
// The zero value is ready for use.
type scrubs struct {
	mu sync.Mutex
	of map[types.NamespacedName]*values.Scrubber
	// complete are the deployments of which every Secret was read by this process.
	complete map[types.NamespacedName]bool
}

// learn keeps what the Secrets among the inputs hold, beside what they held before: objects and messages of the last revision
// may still have that.
func (c *scrubs) learn(d *v1alpha1.BundleDeployment, needed []spec.Input, contents spec.Contents) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh, key := spec.Scrubber(d, needed, contents), client.ObjectKeyFromObject(d)
	if c.of == nil {
		c.of, c.complete = map[types.NamespacedName]*values.Scrubber{}, map[types.NamespacedName]bool{}
	}
	if spec.Lacking(d.Namespace, needed, contents) == nil {
		c.complete[key] = true
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
	delete(c.complete, key)
}

// knows tells whether everything is known that must not be shown of a deployment.
func (c *scrubs) knows(key types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete[key]
}

// cleaner makes text fit to be shown.
type cleaner struct {
	scrubber *values.Scrubber
	// withholds: the Secrets could not be read since the process began, so that nobody knows what must not be shown.
	withholds bool
}

// withheld takes the place of what API servers, webhooks and hooks say.
const withheld = "what the API server, a webhook or a hook says is not shown, since it may hold values of the Secrets of spec.helm.valuesFrom and spec.postBuild.substituteFrom, and these cannot be read: see that they exist and that the ServiceAccount may get them"

// text cleans what others say; nothing stays nothing.
func (c cleaner) text(of string) string {
	if c.withholds && of != "" {
		return withheld
	}
	return clean(c.scrubber, of)
}

// cleaner gives what cleans the texts of a deployment. What a process that began a moment ago does not know yet it reads here:
// a removal, or the care for what is applied while its source is missing, comes without the step that reads the inputs.
func (r *Reconciler) cleaner(ctx context.Context, s *state) cleaner {
	key := client.ObjectKeyFromObject(s.object)
	secret := slices.DeleteFunc(spec.Inputs(s.object), func(i spec.Input) bool { return i.Kind != spec.SecretKind })
	if len(secret) > 0 && !r.scrubs.knows(key) && s.local != nil {
		reader := &state{object: s.object, local: s.local, inputs: inputs{needed: secret}}
		if contents, err := r.fetchInputs(ctx, reader, spec.InputRefs(secret)); err == nil {
			r.scrubs.learn(s.object, secret, contents)
		}
	}
	return cleaner{scrubber: r.scrubs.find(key), withholds: len(secret) > 0 && !r.scrubs.knows(key)}
}

// clean takes what came from Secrets out of a text, and escapes what readers could not see in it.
func clean(scrubber *values.Scrubber, text string) string { return visible.Escape(scrubber.Text(text)) }

// scrub cleans all that a reconcile is going to tell: before it is compared with what was told before, so that it stays the
// same. It returns the failure, cleaned as well.
func (r *Reconciler) scrub(ctx context.Context, s *state, err error) error {
	cleaner := r.cleaner(ctx, s)
	s.scrub(cleaner)
	if s.kept != nil {
		s.kept.scrub(cleaner)
	}
	s.careErr = scrubFailure(cleaner, s.careErr)
	return scrubFailure(cleaner, err)
}

// scrubFailure gives a failure a clean text, with the same step and the same consequences.
func scrubFailure(cleaner cleaner, err error) error {
	if err == nil {
		return nil
	}
	// Up to the step that reads the inputs nothing is written, so that no answer holds anything of them.
	cleaner.withholds = cleaner.withholds && isAfter(err, stepInputs)
	if cleaner.text(err.Error()) == err.Error() {
		return err
	}
	f := judge(err)
	f.err = cleanError{cleaner.text(f.err.Error()), f.err}
	var failed *step.Error
	if errors.As(err, &failed) {
		return &step.Error{Step: failed.Step, Err: f}
	}
	return f
}

// cleanError is an error with another text.
type cleanError struct {
	text string
	err  error
}

func (e cleanError) Error() string { return e.text }

func (e cleanError) Unwrap() error { return e.err }

func (s *state) scrub(cleaner cleaner) {
	all := func(texts []string) {
		for i := range texts {
			texts[i] = cleaner.text(texts[i])
		}
	}
	all(s.warnings)
	all(s.leftOut)
	all(s.drift)
	s.waitsFor, s.hookWaits = cleaner.text(s.waitsFor), cleaner.text(s.hookWaits)
	if s.health != nil {
		for i := range s.health.Unhealthy {
			s.health.Unhealthy[i].Message = cleaner.text(s.health.Unhealthy[i].Message)
		}
	}
	if s.plan != nil {
		all(s.plan.Warnings)
	}
	if s.pruned != nil {
		all(s.pruned.Notes)
	}
	if s.removed != nil {
		all(s.removed.Notes)
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
