// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
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
	contents, err := r.fetchInputs(ctx, s, spec.InputRefs(in.needed))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.scrubs.learn(s.object, in.needed, contents)
	if err = errors.Join(err, lacking(s, contents, err)); err != nil {
		return err
	}
	if in.values, err = spec.HelmValues(s.object, contents); err != nil {
		return failure{reason: v1alpha1.ReasonInputInvalid, stalled: true, err: err}
	}
	in.digest, err = spec.DigestInputs(in.needed, contents, s.inputsKey())
	in.contents, in.read = contents, err == nil
	return err
}

// inlineValues sets the values of the spec, if no inputs are needed.
func (s *state) inlineValues() error {
	var err error
	if s.resolved.inputs.values, err = spec.HelmValues(s.object, nil); err != nil {
		return failure{reason: v1alpha1.ReasonInputInvalid, stalled: true, err: err}
	}
	return nil
}

// lacking is the failure of missing inputs, unless others are forbidden, which is reported first.
func lacking(s *state, contents spec.Contents, hidden error) error {
	if hidden != nil {
		return nil
	}
	if err := spec.Lacking(s.object.Namespace, s.resolved.inputs.needed, contents); err != nil {
		return failure{reason: v1alpha1.ReasonInputNotFound, woken: true, err: err}
	}
	return nil
}

// inputsKey is the key for digests of the inputs of a deployment: the same values in another one have another digest.
func (s *state) inputsKey() []byte {
	return keyring.Derive(s.hashKey, "satchel.dev/inputs/v1", string(s.object.UID))
}

// fetchInputs reads Secrets and ConfigMaps of the deployment's namespace by name, impersonating its ServiceAccount, and
// notes their versions. Missing ones are not in the contents.
func (r *Reconciler) fetchInputs(ctx context.Context, s *state, refs []spec.InputRef) (spec.Contents, error) {
	answers := s.getInputs(ctx, refs)
	contents, problems := spec.Contents{}, []error(nil)
	s.resolved.inputs.readings = nil
	for i, ref := range refs {
		reading := drift.Reading{Ref: s.inputRef(ref), State: drift.Absent}
		switch err := answers[i].err; {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			reading.State = drift.Hidden
			problems = append(problems, failure{reason: v1alpha1.ReasonInputNotFound, woken: true, err: fmt.Errorf(
				"serviceaccount %s may not get %s, which %s names: grant it", s.resolved.local.Identity(), ref.In(s.object.Namespace), s.resolved.inputs.field(ref))})
		case errors.Is(err, errManyInputs):
			reading.State = answers[i].version
			problems = append(problems, failure{reason: v1alpha1.ReasonInputInvalid, woken: true, err: fmt.Errorf(
				"%s, which %s names: %w", ref.In(s.object.Namespace), s.resolved.inputs.field(ref), err)})
		case err != nil && answers[i].version != "":
			reading.State = answers[i].version
			problems = append(problems, err)
		case err != nil:
			problems = append(problems, fmt.Errorf("reading %s: %w", ref.In(s.object.Namespace), err))
		default:
			reading.State, contents[ref] = answers[i].version, answers[i].data
		}
		s.resolved.inputs.readings = append(s.resolved.inputs.readings, reading)
	}
	return contents, allOf(problems)
}

// mostInputBytes bounds the total size of the inputs of a deployment.
const mostInputBytes = 4 << 20

var errManyInputs = fmt.Errorf("the Secrets and ConfigMaps that the deployment names hold more than %d bytes together: name fewer, or smaller ones", mostInputBytes)

// inputAnswer is the result of reading an input.
type inputAnswer struct {
	data    map[string]string
	version string
	err     error
}

// getInputs reads inputs, a few at a time, and keeps at most mostInputBytes. The versions of the rest are noted too, so
// that their changes are detected.
func (s *state) getInputs(ctx context.Context, refs []spec.InputRef) []inputAnswer {
	var held atomic.Int64
	return parallel.Each(ctx, 4, refs, func(ctx context.Context, ref spec.InputRef) inputAnswer {
		object, err := s.resolved.local.Get(ctx, s.inputRef(ref))
		if err != nil {
			return inputAnswer{err: err}
		}
		answer := inputAnswer{version: object.GetResourceVersion()}
		if answer.data, answer.err = spec.DataOf(object); answer.err != nil {
			return answer
		}
		for key, text := range answer.data {
			held.Add(int64(len(key) + len(text)))
		}
		if held.Load() > mostInputBytes {
			answer.data, answer.err = nil, errManyInputs
		}
		return answer
	})
}

// allOf joins several failures, with the reason of the first.
func allOf(problems []error) error {
	if len(problems) < 2 {
		return errors.Join(problems...)
	}
	f := judge(problems[0])
	f.err = errors.Join(problems...)
	return f
}

// field is the first field of the spec that names an input.
func (in *inputs) field(ref spec.InputRef) string {
	for _, input := range in.needed {
		if input.InputRef == ref {
			return input.Field
		}
	}
	return ""
}

// inputRef is the reference to an input.
func (s *state) inputRef(ref spec.InputRef) tenant.Ref {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if ref.Kind == spec.SecretKind {
		resource = secrets
	}
	return tenant.Ref{Resource: resource, Namespace: s.object.Namespace, Name: ref.Name}
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
	s.resolved.artifact, s.resolved.rejected, s.resolved.source.owner = s.resolved.rejected, nil, s.resolved.sourceOwner
	s.object.Status.RejectedRevision, s.resolved.lifted = "", true
}

// follow subscribes to changes of the inputs.
func (r *Reconciler) follow(s *state, err error) {
	key := client.ObjectKeyFromObject(s.object)
	switch failed := pipeline.FailedStep(err); {
	case s.resolved.inputs.sought && len(s.resolved.inputs.needed) == 0:
		r.names.Drop(key)
		r.scrubs.forget(key)
	case len(s.resolved.inputs.readings) > 0:
		r.names.Set(key, s.resolved.local, failed == stepInputs || failed == stepConvert, s.resolved.inputs.readings)
	}
	if len(s.resolved.inputs.needed) > 0 {
		s.settled.gaps = append(r.names.Gaps(key), s.settled.gaps...)
	}
}
