// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"reflect"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatusObject is an object with conditions.
type StatusObject interface {
	conditions.Setter
	client.Object
}

// StatusWriter writes statuses as one field manager.
type StatusWriter struct {
	// Client writes to the API server.
	Client client.Client
	// Reader bypasses every cache.
	Reader client.Reader
	// Manager is the field manager.
	Manager string
	// Lean returns two states of an object between which there is the same merge patch, without the large values that are the same
	// in both. It changes neither; nil where there are none.
	Lean func(before, object client.Object) (leanBefore, leanObject client.Object)
}

// mostRepeats bounds how often a status is sent again because only metadata changed.
const mostRepeats = 5

// Write patches the status when it differs from before. It fails with a
// conflict when the spec or the status changed since the object was read, so that no
// decision taken from a stale copy is recorded. If only metadata changed, such as an
// annotation by another client, the status is sent again. Afterwards object has the new
// resource version.
func (w StatusWriter) Write(ctx context.Context, before, object StatusObject) error {
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	base, ok := before.DeepCopyObject().(StatusObject)
	if !ok {
		return fmt.Errorf("copying %T", before)
	}
	for repeats := 0; ; repeats++ {
		patch, err := w.patch(base, object)
		if err != nil {
			return fmt.Errorf("comparing two states of %s: %w", client.ObjectKeyFromObject(object), err)
		}
		err = w.Client.Status().Patch(ctx, object, patch, client.FieldOwner(w.Manager))
		if err == nil {
			return nil
		}
		version := ""
		if apierrors.IsConflict(err) && repeats < mostRepeats {
			version = w.movedTo(ctx, base)
		}
		if version == "" {
			return fmt.Errorf("writing the status: %w", MarkStale(err))
		}
		base.SetResourceVersion(version)
		object.SetResourceVersion(version)
	}
}

// patch is the merge patch from one state of an object to another one.
func (w StatusWriter) patch(before, object client.Object) (client.Patch, error) {
	if w.Lean != nil {
		before, object = w.Lean(before, object)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(object)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(patch.Type(), data), nil
}

// movedTo is the live resource version of an object if only its metadata changed since it was read: it has the same UID, spec
// and status, and its deletion has not begun since. It is empty otherwise, or if the object cannot be read.
func (w StatusWriter) movedTo(ctx context.Context, before StatusObject) string {
	if w.Reader == nil {
		return ""
	}
	live, ok := reflect.New(reflect.TypeOf(before).Elem()).Interface().(StatusObject)
	if !ok || w.Reader.Get(ctx, client.ObjectKeyFromObject(before), live) != nil {
		return ""
	}
	if live.GetUID() != before.GetUID() || live.GetGeneration() != before.GetGeneration() ||
		live.GetDeletionTimestamp().IsZero() != before.GetDeletionTimestamp().IsZero() {
		return ""
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	is, alsoErr := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil || alsoErr != nil || !equality.Semantic.DeepEqual(was["status"], is["status"]) {
		return ""
	}
	return live.GetResourceVersion()
}
