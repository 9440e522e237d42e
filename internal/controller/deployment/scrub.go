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
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/values"
	"github.com/satchel-dev/satchel/internal/visible"
)

// scrubs hold the secret values of the inputs of each deployment, present and former, which must not be shown. The zero
// value is ready for use.
type scrubs struct {
	mu sync.Mutex
	of map[types.NamespacedName]*values.Scrubber
	// complete are the deployments with every Secret read by this process.
	complete map[types.NamespacedName]bool
}

// learn adds the values of the Secrets among the inputs to the earlier ones: objects and messages of the last revision may
// still contain those.
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

// find returns the secret values of a deployment; nil when there are none.
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

// knows tells whether all secret values of a deployment are known.
func (c *scrubs) knows(key types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete[key]
}

// cleaner removes secret values from messages.
type cleaner struct {
	scrubber *values.Scrubber
	// withholds: the Secrets were not readable since the process began, so the secret values are unknown.
	withholds bool
}

// withheld replaces messages of API servers, webhooks and hooks.
const withheld = "the message of the API server, a webhook or a hook is not shown, since it may contain values of the Secrets of spec.helm.valuesFrom and spec.postBuild.substituteFrom, and these cannot be read: check that they exist and that the ServiceAccount may get them"

// text cleans a message of an API server, webhook or hook; "" stays "".
func (c cleaner) text(of string) string {
	if c.withholds && of != "" {
		return withheld
	}
	return clean(c.scrubber, of)
}

// cleaner returns the cleaner for the messages of a deployment. After a process start it reads the Secrets here: a removal, or
// drift correction while the source is missing, runs without the step that reads the inputs.
func (r *Reconciler) cleaner(ctx context.Context, s *state) cleaner {
	key := client.ObjectKeyFromObject(s.object)
	secret := slices.DeleteFunc(spec.Inputs(s.object), func(i spec.Input) bool { return i.Kind != spec.SecretKind })
	if len(secret) > 0 && !r.scrubs.knows(key) && s.resolved.local != nil {
		reader := &state{subject: subject{object: s.object}, resolved: resolved{local: s.resolved.local, inputs: inputs{needed: secret}}}
		if contents, err := r.fetchInputs(ctx, reader, spec.InputRefs(secret)); err == nil {
			r.scrubs.learn(s.object, secret, contents)
		}
	}
	return cleaner{scrubber: r.scrubs.find(key), withholds: len(secret) > 0 && !r.scrubs.knows(key)}
}

// clean removes secret values from a message, and escapes invisible characters.
func clean(scrubber *values.Scrubber, text string) string { return visible.Escape(scrubber.Text(text)) }

// scrub cleans all messages of a reconcile before they are compared with those in the status, so that they stay stable. It
// returns the cleaned failure.
func (r *Reconciler) scrub(ctx context.Context, s *state, err error) error {
	cleaner := r.cleaner(ctx, s)
	s.scrub(cleaner)
	if s.kept != nil {
		s.kept.scrub(cleaner)
	}
	s.keepErr = scrubFailure(cleaner, s.keepErr)
	return scrubFailure(cleaner, err)
}

// scrubFailure cleans the message of a failure, with the same step and the same consequences.
func scrubFailure(cleaner cleaner, err error) error {
	if err == nil {
		return nil
	}
	// Up to the step that reads the inputs nothing is written, so no answer contains their values.
	cleaner.withholds = cleaner.withholds && isAfter(err, stepInputs)
	if cleaner.text(err.Error()) == err.Error() {
		return err
	}
	f := judge(err)
	f.err = cleanError{cleaner.text(f.err.Error()), f.err}
	var failed *pipeline.StepError
	if errors.As(err, &failed) {
		return &pipeline.StepError{Step: failed.Step, Err: f}
	}
	return f
}

// cleanError is an error with another message.
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
	all(s.decided.leftOut)
	all(s.decided.drift)
	s.delivered.waitsFor, s.settled.hookWaits = cleaner.text(s.delivered.waitsFor), cleaner.text(s.settled.hookWaits)
	if s.settled.health != nil {
		for i := range s.settled.health.Unhealthy {
			s.settled.health.Unhealthy[i].Message = cleaner.text(s.settled.health.Unhealthy[i].Message)
		}
	}
	if s.decided.plan != nil {
		all(s.decided.plan.Warnings)
	}
	if s.delivered.pruned != nil {
		all(s.delivered.pruned.Notes)
	}
	if s.delivered.removed != nil {
		all(s.delivered.removed.Notes)
	}
	for _, result := range []*apply.Result{s.delivered.applied, s.delivered.repaired.result()} {
		if result != nil {
			all(result.Warnings)
		}
	}
	if s.decided.consent != nil {
		all(s.decided.consent.asks)
	}
}
