// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/values"
	"github.com/satchel-dev/satchel/internal/visible"
)

// Memory hold the secret values of the inputs of each deployment, present and former, which must not be shown. The zero
// value is ready for use.
type Memory struct {
	mu sync.Mutex
	of map[types.NamespacedName]*values.Scrubber
	// complete are the deployments with every Secret read by this process.
	complete map[types.NamespacedName]bool
}

// Learn adds the values of the Secrets among the inputs to the earlier ones: objects and messages of the last revision may
// still contain those.
func (c *Memory) Learn(d *v1alpha1.BundleDeployment, needed []spec.Input, contents spec.Contents) {
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

// Find returns the secret values of a deployment; nil when there are none.
func (c *Memory) Find(key types.NamespacedName) *values.Scrubber {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[key]
}

// Forget drops what is kept for a deployment.
func (c *Memory) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, key)
	delete(c.complete, key)
}

// Knows tells whether all secret values of a deployment are known.
func (c *Memory) Knows(key types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete[key]
}

// Cleaner removes secret values from messages.
type Cleaner struct {
	Scrubber *values.Scrubber
	// Withholds: the Secrets were not readable since the process began, so the secret values are unknown.
	Withholds bool
}

// withheld replaces messages of API servers, webhooks and hooks.
const withheld = "the message of the API server, a webhook or a hook is not shown, since it may contain values of the Secrets of spec.helm.valuesFrom and spec.processors[].variables.valuesFrom, and these cannot be read: check that they exist and that the ServiceAccount may get them"

// Text cleans a message of an API server, webhook or hook; "" stays "".
func (c Cleaner) Text(of string) string {
	if c.Withholds && of != "" {
		return withheld
	}
	return clean(c.Scrubber, of)
}

// clean removes secret values from a message, and escapes invisible characters.
func clean(scrubber *values.Scrubber, text string) string { return visible.Escape(scrubber.Text(text)) }

// cleanError is an error with another message.
type cleanError struct {
	text string
	err  error
}

func (e cleanError) Error() string { return e.text }

func (e cleanError) Unwrap() error { return e.err }

// Failure cleans the message of a failure, with the same step and the same consequences.
func (c Cleaner) Failure(err error) error {
	if err == nil || c.Text(err.Error()) == err.Error() {
		return err
	}
	f := failure.Of(err)
	f.Err = cleanError{c.Text(f.Err.Error()), f.Err}
	var failed *pipeline.StepError
	if errors.As(err, &failed) {
		return &pipeline.StepError{Step: failed.Step, Err: f}
	}
	return f
}
