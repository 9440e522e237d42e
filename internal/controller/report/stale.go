// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// staleError is the refusal of a write of our own that was decided on a copy
// which somebody changed meanwhile.
type staleError struct{ error }

// Unwrap gives the API server's conflict.
func (e staleError) Unwrap() error { return e.error }

// Stale marks a conflict as one of our own objects, as opposed to whatever an
// object of a bundle answers. Other errors, and nil, are returned as they are.
func Stale(err error) error {
	if apierrors.IsConflict(err) {
		return staleError{err}
	}
	return err
}

// IsStale tells that an error is a conflict that Stale marked: read again, and
// decide again.
func IsStale(err error) bool {
	var stale staleError
	return errors.As(err, &stale)
}
