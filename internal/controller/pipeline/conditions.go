// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/visible"
)

// maxMessage bounds the message of a condition: the API server accepts 32,768 bytes.
const maxMessage = 8192

// SetCondition sets one condition, with a very long message shortened, and with invisible characters escaped. Every condition
// of the controllers is set here.
func SetCondition(object conditions.Setter, kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(object, &metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: Shorten(visible.Escape(message), maxMessage),
		ObservedGeneration: object.GetGeneration(),
	})
}

// SetConditionSince is SetCondition for a condition that counts from a given time: its message may
// change without moving its last transition.
func SetConditionSince(object conditions.Setter, kind, reason, message string, since time.Time) {
	SetCondition(object, kind, metav1.ConditionTrue, reason, message)
	all := object.GetConditions()
	for i := range all {
		if all[i].Type == kind {
			all[i].LastTransitionTime = StatusTime(since)
		}
	}
	object.SetConditions(all)
}

// SetReady says that the desired state is applied and healthy.
func SetReady(object conditions.Setter, reason, message string) {
	conditions.Delete(object, meta.ReconcilingCondition)
	conditions.Delete(object, meta.StalledCondition)
	SetCondition(object, meta.ReadyCondition, metav1.ConditionTrue, reason, message)
}

// SetProgressing says that the desired state is not reached yet, without a failure.
func SetProgressing(object conditions.Setter, reason, message string) {
	conditions.Delete(object, meta.StalledCondition)
	SetCondition(object, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, message)
	SetCondition(object, meta.ReadyCondition, metav1.ConditionUnknown, reason, message)
}

// SetRetrying says that an attempt failed and that another will follow.
func SetRetrying(object conditions.Setter, reason, message string) {
	conditions.Delete(object, meta.StalledCondition)
	SetCondition(object, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, message)
	SetCondition(object, meta.ReadyCondition, metav1.ConditionFalse, reason, message)
}

// SetStalled says that retrying cannot help until the user changes something.
func SetStalled(object conditions.Setter, reason, message string) {
	conditions.Delete(object, meta.ReconcilingCondition)
	SetCondition(object, meta.StalledCondition, metav1.ConditionTrue, reason, message)
	SetCondition(object, meta.ReadyCondition, metav1.ConditionFalse, reason, message)
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
