// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
)

// inputs are the Secrets and ConfigMaps that the conversion needs.
type inputs struct {
	sought bool // needed is known
	needed []spec.Input
	// read: they were read in this reconcile into contents and values.
	read     bool
	contents spec.Contents
	values   map[string]any // for the templates of a chart
	// digest of them: see status.plan.inputs. If they were not read, it is the last known one.
	digest string
	// readings are the observed versions of the objects.
	readings []drift.Reading
}

// secret tells that there are Secrets among them.
func (in *inputs) secret() bool {
	return slices.ContainsFunc(in.needed, func(i spec.Input) bool { return i.Kind == spec.SecretKind })
}

// findInputs finds out whether the Secrets and ConfigMaps that the conversion needs have changed, by reading them if that
// is not known.
func (r *Reconciler) findInputs(ctx context.Context, s *state) (pipeline.Outcome, error) {
	s.resolved.inputs.sought, s.resolved.inputs.needed = true, spec.Inputs(s.object)
	if len(s.resolved.inputs.needed) == 0 {
		return pipeline.Continue, nil
	}
	last := s.note.attempt
	s.resolved.inputs.digest = last.inputs
	known := s.noted && last == s.attempt() && !s.overInterval() && r.names.Current(client.ObjectKeyFromObject(s.object))
	if known && last.inputs != "" {
		return pipeline.Continue, nil
	}
	if err := r.readInputs(ctx, s); err != nil {
		return pipeline.Stop, err
	}
	s.reconsider()
	return pipeline.Continue, nil
}

// readInputs reads the inputs, once in a reconcile, and merges the values.
func (r *Reconciler) readInputs(ctx context.Context, s *state) error {
	in := &s.resolved.inputs
	if in.read {
		return nil
	}
	if len(in.needed) == 0 {
		return s.inlineValues()
	}
	contents, readings, err := resolve.InputReader{Client: s.resolved.access.Local, Namespace: s.object.Namespace, Needed: in.needed}.Read(ctx)
	in.readings = readings
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.scrubs.Learn(s.object, in.needed, contents)
	if err = errors.Join(err, resolve.LackingInputs(s.object.Namespace, in.needed, contents, err)); err != nil {
		return err
	}
	if in.values, err = spec.HelmValues(s.object, contents); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonInputInvalid, Stalled: true, Err: err}
	}
	in.digest, err = spec.DigestInputs(in.needed, contents, s.inputsKey())
	in.contents, in.read = contents, err == nil
	return err
}

// inlineValues sets the values of the spec, if no inputs are needed.
func (s *state) inlineValues() error {
	var err error
	if s.resolved.inputs.values, err = spec.HelmValues(s.object, nil); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonInputInvalid, Stalled: true, Err: err}
	}
	return nil
}

// inputsKey is the key for digests of the inputs of a deployment: the same values in another one have another digest.
func (s *state) inputsKey() []byte {
	return keyring.Derive(s.hashKey, "satchel.dev/inputs/v1", string(s.object.UID))
}

// changedInputs tells that the inputs changed since the plan in the status.
func (s *state) changedInputs() bool {
	was := s.before.Status.Plan
	return s.resolved.inputs.digest != "" && was != nil && was.Inputs != s.resolved.inputs.digest
}

// reconsider retries a revision that was rejected with other inputs.
func (s *state) reconsider() {
	if s.resolved.rejected == nil || !s.changedInputs() {
		return
	}
	s.resolved.artifact, s.resolved.rejected, s.resolved.source.Owner = s.resolved.rejected, nil, s.resolved.sourceOwner
	s.object.Status.RejectedRevision, s.resolved.lifted = "", true
}

// follow subscribes to changes of the inputs.
func (r *Reconciler) follow(s *state, err error) {
	key := client.ObjectKeyFromObject(s.object)
	switch failed := pipeline.FailedStep(err); {
	case s.resolved.inputs.sought && len(s.resolved.inputs.needed) == 0:
		r.names.Drop(key)
		r.scrubs.Forget(key)
	case len(s.resolved.inputs.readings) > 0:
		r.names.Set(key, s.resolved.access.Local, failed == stepInputs || failed == stepConvert, s.resolved.inputs.readings)
	}
	if len(s.resolved.inputs.needed) > 0 {
		s.settled.gaps = append(r.names.Gaps(key), s.settled.gaps...)
	}
}
