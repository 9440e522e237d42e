// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// reader reads as the tenant; *tenant.Client is one.
type reader interface {
	ClaimReader
	List(ctx context.Context, ref tenant.Ref, selector string, limit int) ([]unstructured.Unstructured, error)
}

const (
	parallelism = 16
	// causes is for how many unhealthy workloads the Pods are read.
	causes = 5
)

// Check reports the health of the objects. Those of a kind that is always current cost
// nothing, those in fresh (just returned by the API server) cost nothing, every
// other one costs one GET; for the first few unhealthy ones the Pods are
// listed. An error means that a request failed.
func Check(ctx context.Context, client reader, objects []plan.Object, fresh map[inventory.ID]*unstructured.Unstructured) (Report, error) {
	return Rules{}.Check(ctx, client, objects, fresh)
}

// Check is the function Check with these rules.
func (r Rules) Check(ctx context.Context, client reader, objects []plan.Object, fresh map[inventory.ID]*unstructured.Unstructured) (Report, error) {
	check := checking{client: client, fresh: fresh, rules: r}
	var interesting []plan.Object
	for _, object := range objects {
		if r.Looks(object) {
			interesting = append(interesting, object)
		}
	}
	findings := parallel.Each(ctx, parallelism, interesting, check.object)
	if err := ctx.Err(); err != nil {
		return Report{}, fmt.Errorf("checking health: %w", err)
	}
	report := Report{Total: len(objects), Seen: map[inventory.ID]Sight{}}
	workloads := map[inventory.ID]*unstructured.Unstructured{}
	var errs []error
	for _, finding := range findings {
		errs = append(errs, finding.err)
		report.Seen[finding.object.ID] = finding.sight()
		if !finding.healthy && finding.err == nil {
			report.Unhealthy = append(report.Unhealthy, finding.object)
			workloads[finding.object.ID] = finding.live
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Report{}, fmt.Errorf("checking health: %w", err)
	}
	report.sort()
	check.trace(ctx, &report, workloads)
	return report, nil
}

type checking struct {
	client reader
	fresh  map[inventory.ID]*unstructured.Unstructured
	rules  Rules
}

// finding is the result for one object.
type finding struct {
	object  Object
	live    *unstructured.Unstructured
	healthy bool
	err     error
}

func (f finding) sight() Sight {
	if f.live == nil {
		return Sight{}
	}
	return Sight{UID: f.live.GetUID(), Version: f.live.GetResourceVersion(), Generation: f.live.GetGeneration(), Healthy: f.healthy, Completed: completed(f.live)}
}

func (c checking) object(ctx context.Context, object plan.Object) finding {
	result := finding{object: Object{ID: object.ID}, live: c.fresh[object.ID]}
	if c.rules.Everything && object.Resource.Resource == "" {
		result.object.State = Missing
		result.object.Message = "the cluster does not serve its kind"
		return result
	}
	if result.live == nil {
		live, err := c.client.Get(ctx, tenant.Ref{Resource: object.Resource, Namespace: object.Namespace, Name: object.Name})
		switch {
		case apierrors.IsNotFound(err):
			result.object.State = Missing
			result.object.Message = "it does not exist"
			return result
		case apierrors.IsForbidden(err):
			result.object.State = Unknown
			result.object.Message = "the ServiceAccount may not get it"
			return result
		case err != nil:
			result.err = fmt.Errorf("%s: %w", object.ID, err)
			return result
		}
		result.live = live
	}
	state, message, healthy, err := c.rules.assessWith(ctx, c.client, result.live)
	result.object.State = state
	result.object.Message = message
	result.healthy = healthy
	result.err = err
	return result
}

// assessWith is assess, and reads what else the state of an object depends on.
func (r Rules) assessWith(ctx context.Context, client ClaimReader, live *unstructured.Unstructured) (state State, message string, healthy bool, err error) {
	state, message, healthy, err = r.assess(ctx, live)
	if healthy || err != nil || r.byKind[live.GroupVersionKind()] != nil {
		return state, message, healthy, err
	}
	if settled, err := settledClaim(ctx, client, live); err != nil || settled {
		return "", "", settled, err
	}
	return state, message, false, nil
}

// trace reads the Pods of the first few unhealthy workloads, and the events of
// those that have none, and adds the causes to the messages.
func (c checking) trace(ctx context.Context, report *Report, workloads map[inventory.ID]*unstructured.Unstructured) {
	var traced []int
	for i, object := range report.Unhealthy {
		if len(traced) < causes && traceable(workloads[object.ID]) {
			traced = append(traced, i)
		}
	}
	parallel.Each(ctx, causes, traced, func(ctx context.Context, i int) struct{} {
		object := &report.Unhealthy[i]
		if cause := c.whatKeeps(ctx, workloads[object.ID]); cause != "" {
			object.Message += ": " + cause
		}
		return struct{}{}
	})
}

// traceable tells whether other objects can explain the state of this one.
func traceable(object *unstructured.Unstructured) bool {
	if object == nil || unseen(object) {
		return false
	}
	kind := inventory.IDOf(object).GroupKind().String()
	return selecting[kind] || explained[kind]
}

// whatKeeps returns why an object is not healthy; empty when unknown.
func (c checking) whatKeeps(ctx context.Context, object *unstructured.Unstructured) string {
	kind := inventory.IDOf(object).GroupKind().String()
	cause := ""
	if selecting[kind] {
		cause = c.cause(ctx, object)
	}
	if cause == "" && explained[kind] {
		cause = c.happened(ctx, object)
	}
	return cause
}
