// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mostValues is how many values (fields, list items, scalars) of rendered
// objects are held at once by all reconciles together. One bundle may have that
// many by default; a value takes some 200 bytes, and twice that while a plan
// holds the objects rendered and completed.
const mostValues = 1_000_000

// rendering bounds the memory that the contents of bundles take: a few KiB of
// archive can become hundreds of MiB of objects. One bundle is converted at a
// time, and what has been converted waits until there is room for it.
type rendering struct {
	converting *semaphore.Weighted
	values     *semaphore.Weighted
}

func newRendering() *rendering {
	return &rendering{converting: semaphore.NewWeighted(1), values: semaphore.NewWeighted(mostValues)}
}

// begin waits for the turn to convert; the function it returns ends the turn.
func (r *rendering) begin(ctx context.Context) (func(), error) {
	if err := r.converting.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting for other bundles to be converted: %w", err)
	}
	return func() { r.converting.Release(1) }, nil
}

// hold waits until there is room for the objects; the function it returns gives
// the room back.
func (r *rendering) hold(ctx context.Context, objects []*unstructured.Unstructured) (func(), error) {
	weight := int64(0)
	for _, object := range objects {
		weight += valuesIn(object.Object)
	}
	weight = min(weight, mostValues)
	if err := r.values.Acquire(ctx, weight); err != nil {
		return nil, fmt.Errorf("waiting for other bundles to be applied: %w", err)
	}
	return func() { r.values.Release(weight) }, nil
}

// valuesIn counts a value and all that it contains.
func valuesIn(value any) int64 {
	count := int64(1)
	switch typed := value.(type) {
	case map[string]any:
		for _, field := range typed {
			count += valuesIn(field)
		}
	case []any:
		for _, item := range typed {
			count += valuesIn(item)
		}
	}
	return count
}
