// SPDX-License-Identifier: Apache-2.0

package objecterror

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// immutableWords are the phrases with which the API server says that a field is immutable.
var immutableWords = []string{
	"immutable", "may not change once set", "may not be changed", "may not change fields",
	"cannot change roleRef", "updates to ", "cannot be changed", "can not be changed",
}

// Immutable returns the fields that can only be changed by recreating the object,
// with what the API server says of them. A policy or webhook that forbids a change
// names no field: recreating must not circumvent it.
func Immutable(err error) []string {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "" || !saysImmutable(cause.Message) {
			continue
		}
		fields = append(fields, fmt.Sprintf("%s: %s", cause.Field, withoutValue(cause)))
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func saysImmutable(message string) bool {
	return slices.ContainsFunc(immutableWords, func(words string) bool { return strings.Contains(message, words) })
}

// withoutValue removes from a cause the value that it quotes, which may be long.
func withoutValue(cause metav1.StatusCause) string {
	if text, found := strings.CutPrefix(cause.Message, "Forbidden: "); found {
		return text
	}
	return cause.Message[strings.LastIndex(cause.Message, ": ")+1:]
}

// Precious are the kinds that are never deleted to be recreated, and why.
var Precious = map[string]string{
	"PersistentVolumeClaim": "its data would be lost",
	"PersistentVolume":      "its data would be lost",
	"Namespace":             "everything in it would be lost",
	"CustomResourceDefinition.apiextensions.k8s.io": "all resources of its kind would be lost",
}

// Unchangeable says which fields of an object are immutable, and what to do.
func Unchangeable(id inventory.ID, fields []string) string {
	text := "cannot be changed as the bundle wants it: " + strings.Join(fields, "; ")
	if why := Precious[id.GroupKind().String()]; why != "" {
		return text + ". It is never deleted for that, for " + why + ": revert the change, or give the object another name"
	}
	return text + ". Set spec.apply.recreate to OnImmutableChange, or delete the object, to have it recreated; or revert the change"
}
