// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// Revision is one revision to convert.
type Revision struct {
	Object *v1alpha1.BundleDeployment
	// About identifies everything that the conversion depends on, except the cluster. A conversion that exceeded a limit
	// is not repeated while this stays the same.
	About    string
	Revision string
	Content  *loader.Content // closed by Convert, at the latest at the end of the conversion
	Given    spec.Given
	// client asks the cluster for its capabilities. first: nothing is installed there.
	Client *tenant.Client
	First  bool
}

// Refused is the limit that the conversion exceeded before, with the same input; nil when there is none.
func (r *Renderer) Refused(in Revision) error {
	if limit := r.excesses.Final(client.ObjectKeyFromObject(in.Object), in.About); limit != nil {
		return exceeded(limit, true)
	}
	return nil
}

// Convert converts the bundle in a worker process, or returns an earlier result.
func (r *Renderer) Convert(ctx context.Context, in Revision) (*jobs.Converted, error) {
	key, content := client.ObjectKeyFromObject(in.Object), in.Content
	task := jobs.Conversion{
		Files: jobs.Files{File: content.File(), Index: content.Index()}, Options: spec.Conversion(in.Object, in.Given, r.Manifests),
		Capabilities: askingCapabilities(in.Client, in.First),
	}
	result, err := r.Conversions.Convert(ctx, key, in.About,
		func(ctx context.Context) (*jobs.Converted, error) {
			return jobs.Convert(ctx, r.Workers, key.Namespace, task)
		},
		func() { _ = content.Close() })
	if err == nil {
		r.excesses.Forget(key)
		return result, nil
	}
	return nil, r.conversionFailure(key, in.About, in.Revision, err)
}

// conversionFailure classifies a failed conversion. The first line that holds decides.
//
//	it is under way                            waits, and is woken
//	the bundle is refused                      ConversionFailed, stalled unless a file could not be read just now
//	it exceeded a limit                        LimitExceeded, stalled where trying again cannot help
//	the namespace has no CPU time left         CPUBudgetExceeded, tried when it has
//	no process could be started                WorkerUnavailable, tried again
//	else, such as a process that crashed       ConversionFailed, tried again
func (r *Renderer) conversionFailure(key types.NamespacedName, about, revision string, err error) error {
	var refused *convert.Error
	var limit *worker.LimitError
	var budget *worker.BudgetError
	var known failure.Error
	switch {
	case errors.Is(err, ErrPending):
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

// JudgeUpgrade judges the upgrade of a CRD in a worker process. One that exceeds a limit is not judged.
func (r *Renderer) JudgeUpgrade(namespace string) func(ctx context.Context, live, desired *unstructured.Unstructured) (crdsafety.Judgement, error) {
	return func(ctx context.Context, live, desired *unstructured.Unstructured) (crdsafety.Judgement, error) {
		return jobs.Judge(ctx, r.Workers, namespace, live, desired)
	}
}
