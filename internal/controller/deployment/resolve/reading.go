// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"errors"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec"
)

// FindInputs finds out whether the Secrets and ConfigMaps that the conversion needs have changed, by reading them if that
// is not known.
func (st *Stage) FindInputs(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	in.Resolved.Inputs.Sought, in.Resolved.Inputs.Needed = true, spec.Inputs(in.Object)
	if len(in.Resolved.Inputs.Needed) == 0 {
		return pipeline.Continue, nil
	}
	last := in.Note.Attempt
	in.Resolved.Inputs.Digest = last.Inputs
	known := in.Note.Known && last == in.Resolved.Attempt(in.Subject) && !in.overInterval() && st.Names.Current(in.Key())
	if known && last.Inputs != "" {
		return pipeline.Continue, nil
	}
	if err := st.ReadInputs(ctx, in); err != nil {
		return pipeline.Stop, err
	}
	in.reconsider()
	return pipeline.Continue, nil
}

// ReadInputs reads the inputs, once in a reconcile, and merges the values.
func (st *Stage) ReadInputs(ctx context.Context, in *Input) error {
	inputs := &in.Resolved.Inputs
	if inputs.Read {
		return nil
	}
	if len(inputs.Needed) == 0 {
		return in.inlineValues()
	}
	contents, readings, err := InputReader{Client: in.Resolved.Access.Local, Namespace: in.Object.Namespace, Needed: inputs.Needed}.Read(ctx)
	inputs.Readings = readings
	if ctx.Err() != nil {
		return ctx.Err()
	}
	st.Scrubs.Learn(in.Object, inputs.Needed, contents)
	if err = errors.Join(err, LackingInputs(in.Object.Namespace, inputs.Needed, contents, err)); err != nil {
		return err
	}
	if inputs.Values, err = spec.HelmValues(in.Object, contents); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonInputInvalid, Stalled: true, Err: err}
	}
	inputs.Digest, err = spec.DigestInputs(inputs.Needed, contents, in.inputsKey())
	inputs.Contents, inputs.Read = contents, err == nil
	return err
}

// inlineValues sets the values of the spec, if no inputs are needed.
func (in *Input) inlineValues() error {
	var err error
	if in.Resolved.Inputs.Values, err = spec.HelmValues(in.Object, nil); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonInputInvalid, Stalled: true, Err: err}
	}
	return nil
}

// inputsKey is the key for digests of the inputs of a deployment: the same values in another one have another digest.
func (in *Input) inputsKey() []byte {
	return keyring.Derive(in.HashKey, format.Plan.Purpose("inputs"), string(in.Object.UID))
}

// reconsider retries a revision that was rejected with other inputs.
func (in *Input) reconsider() {
	if in.Resolved.Rejected == nil || !in.Resolved.ChangedInputs(in.Subject) {
		return
	}
	in.Resolved.Artifact = in.Resolved.Rejected
	in.Resolved.Rejected = nil
	in.Resolved.Source.Owner = in.Resolved.SourceOwner
	in.Resolved.Lifted = true
	in.Object.Status.Rejected.Revision = ""
}
