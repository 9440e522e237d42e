// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
)

// findInputs finds out whether the Secrets and ConfigMaps that the conversion needs have changed, by reading them if that
// is not known.
func (r *Reconciler) findInputs(ctx context.Context, s *state) (pipeline.Outcome, error) {
	s.resolved.Inputs.Sought, s.resolved.Inputs.Needed = true, spec.Inputs(s.Object)
	if len(s.resolved.Inputs.Needed) == 0 {
		return pipeline.Continue, nil
	}
	last := s.note.Attempt
	s.resolved.Inputs.Digest = last.Inputs
	known := s.note.Known && last == s.resolved.Attempt(&s.Subject) && !s.overInterval() && r.names.Current(s.Key())
	if known && last.Inputs != "" {
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
	in := &s.resolved.Inputs
	if in.Read {
		return nil
	}
	if len(in.Needed) == 0 {
		return s.inlineValues()
	}
	contents, readings, err := resolve.InputReader{Client: s.resolved.Access.Local, Namespace: s.Object.Namespace, Needed: in.Needed}.Read(ctx)
	in.Readings = readings
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.scrubs.Learn(s.Object, in.Needed, contents)
	if err = errors.Join(err, resolve.LackingInputs(s.Object.Namespace, in.Needed, contents, err)); err != nil {
		return err
	}
	if in.Values, err = spec.HelmValues(s.Object, contents); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonInputInvalid, Stalled: true, Err: err}
	}
	in.Digest, err = spec.DigestInputs(in.Needed, contents, s.inputsKey())
	in.Contents, in.Read = contents, err == nil
	return err
}

// inlineValues sets the values of the spec, if no inputs are needed.
func (s *state) inlineValues() error {
	var err error
	if s.resolved.Inputs.Values, err = spec.HelmValues(s.Object, nil); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonInputInvalid, Stalled: true, Err: err}
	}
	return nil
}

// inputsKey is the key for digests of the inputs of a deployment: the same values in another one have another digest.
func (s *state) inputsKey() []byte {
	return keyring.Derive(s.HashKey, "satchel.dev/inputs/v1", string(s.Object.UID))
}

// reconsider retries a revision that was rejected with other inputs.
func (s *state) reconsider() {
	if s.resolved.Rejected == nil || !s.resolved.ChangedInputs(&s.Subject) {
		return
	}
	s.resolved.Artifact, s.resolved.Rejected, s.resolved.Source.Owner = s.resolved.Rejected, nil, s.resolved.SourceOwner
	s.Object.Status.RejectedRevision, s.resolved.Lifted = "", true
}

// follow subscribes to changes of the inputs.
func (r *Reconciler) follow(s *state, err error) {
	key := s.Key()
	switch failed := pipeline.FailedStep(err); {
	case s.resolved.Inputs.Sought && len(s.resolved.Inputs.Needed) == 0:
		r.names.Drop(key)
		r.scrubs.Forget(key)
	case len(s.resolved.Inputs.Readings) > 0:
		r.names.Set(key, s.resolved.Access.Local, failed == stepInputs || failed == stepConvert, s.resolved.Inputs.Readings)
	}
	if len(s.resolved.Inputs.Needed) > 0 {
		s.settled.Gaps = append(r.names.Gaps(key), s.settled.Gaps...)
	}
}
