// SPDX-License-Identifier: Apache-2.0

package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is what the kinds have in common.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
}
