// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/spec"
)

// The kinds that are read for deployments by name.
var (
	secretResource    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// InputReader reads the Secrets and ConfigMaps that a conversion needs.
type InputReader struct {
	Client    *tenant.Client // impersonates the ServiceAccount of the deployment
	Namespace string
	Needed    []spec.Input
}

// Read reads the Secrets and ConfigMaps by name, and notes their versions. Missing ones are not in the contents.
func (in InputReader) Read(ctx context.Context) (contents spec.Contents, readings []drift.Reading, err error) {
	refs := spec.InputRefs(in.Needed)
	answers := in.getInputs(ctx, refs)
	contents = spec.Contents{}
	var problems []error
	for i, ref := range refs {
		reading := drift.Reading{Ref: in.inputRef(ref), State: drift.Absent}
		switch err := answers[i].err; {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			reading.State = drift.Hidden
			problems = append(problems, failure.Error{Reason: v1alpha1.ReasonInputNotFound, Woken: true, Err: fmt.Errorf(
				"serviceaccount %s may not get %s, which %s names: grant it", in.Client.Identity(), ref.In(in.Namespace), in.field(ref))})
		case errors.Is(err, errManyInputs):
			reading.State = answers[i].version
			problems = append(problems, failure.Error{Reason: v1alpha1.ReasonInputInvalid, Woken: true, Err: fmt.Errorf(
				"%s, which %s names: %w", ref.In(in.Namespace), in.field(ref), err)})
		case err != nil && answers[i].version != "":
			reading.State = answers[i].version
			problems = append(problems, err)
		case err != nil:
			problems = append(problems, fmt.Errorf("reading %s: %w", ref.In(in.Namespace), err))
		default:
			reading.State, contents[ref] = answers[i].version, answers[i].data
		}
		readings = append(readings, reading)
	}
	return contents, readings, allOf(problems)
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
func (in InputReader) getInputs(ctx context.Context, refs []spec.InputRef) []inputAnswer {
	var held atomic.Int64
	return parallel.Each(ctx, 4, refs, func(ctx context.Context, ref spec.InputRef) inputAnswer {
		object, err := in.Client.Get(ctx, in.inputRef(ref))
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
	f := failure.Of(problems[0])
	f.Err = errors.Join(problems...)
	return f
}

// field is the first field of the spec that names an input.
func (in InputReader) field(ref spec.InputRef) string {
	for _, input := range in.Needed {
		if input.InputRef == ref {
			return input.Field
		}
	}
	return ""
}

// inputRef is the reference to an input.
func (in InputReader) inputRef(ref spec.InputRef) tenant.Ref {
	resource := configMapResource
	if ref.Kind == spec.SecretKind {
		resource = secretResource
	}
	return tenant.Ref{Resource: resource, Namespace: in.Namespace, Name: ref.Name}
}

// LackingInputs is the failure of missing inputs, unless others are forbidden, which is reported first.
func LackingInputs(namespace string, needed []spec.Input, contents spec.Contents, hidden error) error {
	if hidden != nil {
		return nil
	}
	if err := spec.Lacking(namespace, needed, contents); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonInputNotFound, Woken: true, Err: err}
	}
	return nil
}
