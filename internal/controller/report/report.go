// SPDX-License-Identifier: Apache-2.0

// Package report writes conditions that follow kstatus, and patches a status only when
// it changed.
package report

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/visible"
)

// maxMessage bounds the message of a condition: the API server accepts 32,768 bytes.
const maxMessage = 8192

// Set sets one condition, with a very long message shortened, and with invisible characters escaped. Every condition
// of the controllers is set here.
func Set(object conditions.Setter, kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(object, &metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: Shorten(visible.Escape(message), maxMessage),
		ObservedGeneration: object.GetGeneration(),
	})
}

// Ready says that the desired state is applied and healthy.
func Ready(object conditions.Setter, reason, message string) {
	conditions.Delete(object, meta.ReconcilingCondition)
	conditions.Delete(object, meta.StalledCondition)
	Set(object, meta.ReadyCondition, metav1.ConditionTrue, reason, message)
}

// Progressing says that the desired state is not reached yet, without a failure.
func Progressing(object conditions.Setter, reason, message string) {
	conditions.Delete(object, meta.StalledCondition)
	Set(object, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, message)
	Set(object, meta.ReadyCondition, metav1.ConditionUnknown, reason, message)
}

// Retrying says that an attempt failed and that another will follow.
func Retrying(object conditions.Setter, reason, message string) {
	conditions.Delete(object, meta.StalledCondition)
	Set(object, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, message)
	Set(object, meta.ReadyCondition, metav1.ConditionFalse, reason, message)
}

// Stalled says that retrying cannot help until the user changes something.
func Stalled(object conditions.Setter, reason, message string) {
	conditions.Delete(object, meta.ReconcilingCondition)
	Set(object, meta.StalledCondition, metav1.ConditionTrue, reason, message)
	Set(object, meta.ReadyCondition, metav1.ConditionFalse, reason, message)
}

// Shorten cuts a string to at most limit bytes, at a line end if one is near, and says
// how much is missing.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := strings.ToValidUTF8(text[:limit-40], "")
	if line := strings.LastIndexByte(cut, '\n'); line > limit/2 {
		cut = cut[:line]
	}
	return fmt.Sprintf("%s … (%d more bytes)", cut, len(text)-len(cut))
}

// Object is an object with conditions.
type Object interface {
	conditions.Setter
	client.Object
}

// Writer writes statuses as one field manager.
type Writer struct {
	// Client writes to the API server.
	Client client.Client
	// Reader bypasses every cache.
	Reader client.Reader
	// Manager is the field manager.
	Manager string
}

// mostRepeats bounds how often a status is sent again because only metadata changed.
const mostRepeats = 5

// Write patches the status when it differs from before. It fails with a
// conflict when the spec or the status changed since the object was read, so that no
// decision taken from a stale copy is recorded. If only metadata changed, such as an
// annotation by another client, the status is sent again. Afterwards object has the new
// resource version.
func (w Writer) Write(ctx context.Context, before, object Object) error {
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	base, ok := before.DeepCopyObject().(Object)
	if !ok {
		return fmt.Errorf("copying %T", before)
	}
	for repeats := 0; ; repeats++ {
		patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
		err := w.Client.Status().Patch(ctx, object, patch, client.FieldOwner(w.Manager))
		if err == nil {
			return nil
		}
		version := ""
		if apierrors.IsConflict(err) && repeats < mostRepeats {
			version = w.movedTo(ctx, base)
		}
		if version == "" {
			return fmt.Errorf("writing the status: %w", Stale(err))
		}
		base.SetResourceVersion(version)
		object.SetResourceVersion(version)
	}
}

// movedTo is the live resource version of an object if only its metadata changed since it was read: it has the same UID, spec
// and status, and its deletion has not begun since. It is empty otherwise, or if the object cannot be read.
func (w Writer) movedTo(ctx context.Context, before Object) string {
	if w.Reader == nil {
		return ""
	}
	live, ok := reflect.New(reflect.TypeOf(before).Elem()).Interface().(Object)
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
