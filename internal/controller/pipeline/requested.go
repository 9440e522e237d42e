// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Requested is the value of the annotation that requests a reconcile; "" without one.
func Requested(object metav1.Object) string {
	at, _ := meta.ReconcileAnnotationValue(object.GetAnnotations())
	return at
}
