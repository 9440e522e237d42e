// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Error is why a reconcile failed, with the consequences for the conditions and the next attempt.
type Error struct {
	// Condition becomes True beside Ready=False: FetchFailed or StorageOperationFailed; "" for none.
	Condition string
	// Reason is one of the reasons of the API.
	Reason string
	// Stalled: the same content fails again, until the user changes something.
	Stalled bool
	// Wait is the pause that the upstream requested; 0 for none.
	Wait time.Duration
	// Err says what happened, to which object, and what to do.
	Err error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// InvalidSpec is the failure of a stored spec that an older CRD admitted.
func InvalidSpec(err error) *Error {
	return &Error{Condition: v1alpha1.FetchFailedCondition, Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Err: err}
}

// SignatureRequired is the failure of a source that does not require the signatures that its namespace requires.
func SignatureRequired(err error) *Error {
	return &Error{Condition: v1alpha1.FetchFailedCondition, Reason: v1alpha1.ReasonSignatureRequired, Stalled: true, Err: err}
}

// ImageDenied is the failure of a source with an image that a BundleImagePolicy denies.
func ImageDenied(err error) *Error {
	return &Error{Condition: v1alpha1.FetchFailedCondition, Reason: v1alpha1.ReasonImageDenied, Stalled: true, Err: err}
}

// UploadPending is the failure of a source with content that has to be uploaded.
func UploadPending(err error) *Error {
	return &Error{Condition: v1alpha1.FetchFailedCondition, Reason: v1alpha1.ReasonUploadPending, Err: err}
}

// ExternalArtifact is the failure to update the ExternalArtifact of a source. It concerns no condition but Ready.
func ExternalArtifact(err error) *Error {
	return &Error{Reason: v1alpha1.ReasonExternalArtifactFailed, Err: err}
}

// reasons maps the typed errors of the fetch packages to condition reasons.
var reasons = map[fetch.Reason]string{
	fetch.NotFound:       v1alpha1.ReasonNotFound,
	fetch.Unauthorized:   v1alpha1.ReasonUnauthorized,
	fetch.Unreachable:    v1alpha1.ReasonUnreachable,
	fetch.Timeout:        v1alpha1.ReasonTimeout,
	fetch.RateLimited:    v1alpha1.ReasonRateLimited,
	fetch.Refused:        v1alpha1.ReasonRefused,
	fetch.LimitExceeded:  v1alpha1.ReasonLimitExceeded,
	fetch.InvalidContent: v1alpha1.ReasonInvalidContent,
	fetch.DigestMismatch: v1alpha1.ReasonDigestMismatch,
	fetch.Moved:          v1alpha1.ReasonProgressingWithRetry,
	fetch.Unverified:     v1alpha1.ReasonVerificationFailed,
}

// Of returns the failure behind the error of a reconcile.
//
//	the storage failed                   StorageOperationFailed, retried
//	the namespace has no room left       StorageOperationFailed, QuotaExceeded, retried
//	the ExternalArtifact is not updated  no condition but Ready, retried
//	the spec cannot be read              FetchFailed, InvalidSpec, stalled
//	the namespace requires signatures    FetchFailed, SignatureRequired, stalled
//	a policy denies an image             FetchFailed, ImageDenied, stalled
//	an upload is pending                 FetchFailed, UploadPending, retried
//	the content is invalid               FetchFailed, stalled until it moves
//	the time is over                     FetchFailed, Timeout, retried
//	the upstream                         FetchFailed, retried
//	anything else (the API server)       FetchFailed, Failed, retried
func Of(err error) Error {
	var failed *volume.StorageError
	if errors.As(err, &failed) {
		return Error{Condition: v1alpha1.StorageOperationFailedCondition, Reason: v1alpha1.ReasonStorageFailed, Err: err}
	}
	var quota *storage.QuotaError
	if errors.As(err, &quota) {
		return Error{Condition: v1alpha1.StorageOperationFailedCondition, Reason: v1alpha1.ReasonQuotaExceeded, Err: err}
	}
	var known *Error
	if errors.As(err, &known) {
		return *known
	}
	found := Error{Condition: v1alpha1.FetchFailedCondition, Reason: v1alpha1.ReasonFailed, Err: err}
	var typed *fetch.Error
	if errors.As(err, &typed) {
		found.Reason, found.Stalled, found.Wait = reasons[typed.Reason], typed.Permanent(), typed.RetryAfter
		return found
	}
	if errors.Is(err, context.DeadlineExceeded) {
		found.Reason = v1alpha1.ReasonTimeout
	}
	return found
}
