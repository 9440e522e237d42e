// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/controller/conversion"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// How many values (fields, list items, scalars) of objects are held at once. One bundle may have a million by default; a
// value takes some 200 bytes, and twice that while a plan holds the objects rendered and completed. Objects for other
// clusters have a limit of their own, since those servers decide how long they are held.
const (
	mostValues       = 1_000_000
	mostRemoteValues = 500_000
	freeValues       = 20_000
)

// roomOf is the memory limit that the objects of a deployment count against.
func (r *Reconciler) roomOf(d *v1alpha1.BundleDeployment) *conversion.Room {
	if d.Spec.KubeConfig != nil {
		return r.remoteRoom
	}
	return r.room
}

// hold reserves room for objects until the state is closed. If there is none, the deployment is woken when there is.
func (r *Reconciler) hold(s *state, values int64) error {
	key, room := client.ObjectKeyFromObject(s.object), r.roomOf(s.object)
	if !room.Take(key, values) {
		return failure.Error{Reason: v1alpha1.ReasonWaitingForMemory, Waiting: true, Woken: true, Err: errors.New(
			"waiting until other large bundles are applied: their objects use all the memory for decoded objects")}
	}
	s.rendered.release = func() { room.Leave(key) }
	return nil
}

// valuesOf counts the values of objects.
func valuesOf(objects []*unstructured.Unstructured) int64 {
	count := int64(0)
	for _, object := range objects {
		count += jobs.Values(object.Object)
	}
	return count
}

// releasePlaces releases the queue places that were kept for a deployment if its reconcile ended without asking for
// them.
func (r *Reconciler) releasePlaces(s *state, err error) {
	key := client.ObjectKeyFromObject(s.object)
	if failure.Of(err).Reason != v1alpha1.ReasonWaitingForMemory && failure.Of(s.keepErr).Reason != v1alpha1.ReasonWaitingForMemory {
		r.room.Forget(key)
		r.remoteRoom.Forget(key)
	}
	if !errors.Is(err, conversion.ErrPending) {
		r.conversions.Leave(key)
	}
}

// abandon ends the conversion of a deployment as soon as it is deleted or suspended. It lets every event through.
func (r *Reconciler) abandon() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		d, ok := e.ObjectNew.(*v1alpha1.BundleDeployment)
		if ok && (!d.DeletionTimestamp.IsZero() || d.Spec.Suspend) {
			r.conversions.End(client.ObjectKeyFromObject(d))
		}
		return true
	}}
}

// conversionInput identifies everything that the conversion depends on, except the cluster. A conversion that exceeded a limit
// is not repeated while this stays the same.
func (s *state) conversionInput() string {
	a := s.attempt()
	return fmt.Sprintf("%s %d %q %q %q", s.object.UID, a.generation, a.revision, a.digest, a.inputs)
}

// converted converts the bundle in a worker process, or returns an earlier result.
func (r *Reconciler) converted(ctx context.Context, s *state, given spec.Given) (*jobs.Converted, error) {
	key, about, content := client.ObjectKeyFromObject(s.object), s.conversionInput(), s.rendered.content
	if limit := r.excesses.Final(key, about); limit != nil {
		return nil, exceeded(limit, true)
	}
	s.rendered.content = nil // closed at the end of the conversion
	task := jobs.Conversion{
		Files: jobs.Files{File: content.File(), Index: content.Index()}, Options: spec.Conversion(s.object, given, r.Manifests),
		Capabilities: s.askingCapabilities(),
	}
	result, err := r.conversions.Convert(ctx, key, about,
		func(ctx context.Context) (*jobs.Converted, error) {
			return jobs.Convert(ctx, r.Workers, key.Namespace, task)
		},
		func() { _ = content.Close() })
	if err == nil {
		r.excesses.Forget(key)
		return result, nil
	}
	return nil, r.conversionFailure(key, about, s.revision(), err)
}

// conversionFailure classifies a failed conversion. The first line that holds decides.
//
//	it is under way                            waits, and is woken
//	the bundle is refused                      ConversionFailed, stalled unless a file could not be read just now
//	it exceeded a limit                        LimitExceeded, stalled where trying again cannot help
//	the namespace has no CPU time left         CPUBudgetExceeded, tried when it has
//	no process could be started                WorkerUnavailable, tried again
//	else, such as a process that crashed       ConversionFailed, tried again
func (r *Reconciler) conversionFailure(key types.NamespacedName, about, revision string, err error) error {
	var refused *convert.Error
	var limit *worker.LimitError
	var budget *worker.BudgetError
	var known failure.Error
	switch {
	case errors.Is(err, conversion.ErrPending):
		return failure.Error{Reason: v1alpha1.ReasonConverting, Waiting: true, Woken: true, Err: fmt.Errorf("converting revision %s: %w", revision, err)}
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return failure.Error{Reason: v1alpha1.ReasonConversionFailed, Stalled: refused.Permanent(), Err: err}
	case errors.As(err, &limit):
		return exceeded(limit, r.excesses.Note(key, about, limit))
	case errors.As(err, &budget):
		return failure.Error{Reason: v1alpha1.ReasonCPUBudgetExceeded, After: budget.RetryAfter, Err: fmt.Errorf("converting the bundle: %w", err)}
	case errors.Is(err, worker.ErrUnavailable), errors.Is(err, worker.ErrClosed):
		return failure.Error{Reason: v1alpha1.ReasonWorkerUnavailable, Err: fmt.Errorf("converting the bundle: %w", err)}
	}
	return failure.Error{Reason: v1alpha1.ReasonConversionFailed, Err: fmt.Errorf("converting the bundle: %w", err)}
}

// exceeded is the failure of a conversion beyond a limit.
func exceeded(limit *worker.LimitError, final bool) failure.Error {
	when := "; it is tried once more, since CPU time depends on the load of the machine"
	if final {
		when = "; it is tried again when the bundle, the spec or its inputs change: make the bundle smaller or simpler, or have the limit of the controller raised"
	}
	return failure.Error{Reason: v1alpha1.ReasonLimitExceeded, Stalled: final, Err: fmt.Errorf("converting the bundle %w%s", limit, when)}
}

// judgeUpgrade judges the upgrade of a CRD in a worker process. One that exceeds a limit is not judged.
func (r *Reconciler) judgeUpgrade(namespace string) func(ctx context.Context, live, desired *unstructured.Unstructured) (crdsafety.Judgement, error) {
	return func(ctx context.Context, live, desired *unstructured.Unstructured) (crdsafety.Judgement, error) {
		return jobs.Judge(ctx, r.Workers, namespace, live, desired)
	}
}
