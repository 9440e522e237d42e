// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// staleError is a conflict of a write that was decided on an outdated copy of one of
// our own objects.
type staleError struct{ error }

// Unwrap returns the API server's conflict.
func (e staleError) Unwrap() error { return e.error }

// MarkStale marks a conflict as one of our own objects, as opposed to objects of a bundle.
// Other errors, and nil, are returned unchanged.
func MarkStale(err error) error {
	if apierrors.IsConflict(err) {
		return staleError{err}
	}
	return err
}

// IsStale tells that an error is a conflict that MarkStale marked: read again, and
// decide again.
func IsStale(err error) bool {
	var stale staleError
	return errors.As(err, &stale)
}
