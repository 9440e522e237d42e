// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// verdict holds the consequences of a failure for the conditions and the next attempt.
type verdict struct {
	condition string // FetchFailed, StorageOperationFailed or none
	reason    string
	stalled   bool          // the same content fails again
	wait      time.Duration // the pause that the upstream asked for
}

// specError is about a stored spec that is invalid.
type specError struct{ err error }

func (e *specError) Error() string { return e.err.Error() }

func (e *specError) Unwrap() error { return e.err }

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

// judge turns the error of a reconcile into a verdict.
//
//	the storage failed                   StorageOperationFailed, retried
//	the namespace has no room left       StorageOperationFailed, QuotaExceeded, retried
//	the ExternalArtifact is not kept     no condition but Ready, retried
//	the spec cannot be read              FetchFailed, InvalidSpec, stalled
//	the namespace requires signatures    FetchFailed, SignatureRequired, stalled
//	an upload is waited for              FetchFailed, UploadPending, retried
//	the content is what is wrong         FetchFailed, stalled until it moves
//	the time is over                     FetchFailed, Timeout, retried
//	the upstream                         FetchFailed, retried
//	anything else (the API server)       FetchFailed, Failed, retried
func judge(err error) verdict {
	var failed *volume.StorageError
	if errors.As(err, &failed) {
		return verdict{condition: v1alpha1.StorageOperationFailedCondition, reason: v1alpha1.ReasonStorageFailed}
	}
	var quota *storage.QuotaError
	if errors.As(err, &quota) {
		return verdict{condition: v1alpha1.StorageOperationFailedCondition, reason: v1alpha1.ReasonQuotaExceeded}
	}
	var external *externalError
	if errors.As(err, &external) {
		return verdict{reason: v1alpha1.ReasonExternalArtifactFailed, stalled: external.stalled}
	}
	var unread *specError
	if errors.As(err, &unread) {
		return verdict{condition: v1alpha1.FetchFailedCondition, reason: v1alpha1.ReasonInvalidSpec, stalled: true}
	}
	var unsigned *signatureError
	if errors.As(err, &unsigned) {
		return verdict{condition: v1alpha1.FetchFailedCondition, reason: v1alpha1.ReasonSignatureRequired, stalled: true}
	}
	var pending *pendingError
	if errors.As(err, &pending) {
		return verdict{condition: v1alpha1.FetchFailedCondition, reason: v1alpha1.ReasonUploadPending}
	}
	v := verdict{condition: v1alpha1.FetchFailedCondition, reason: v1alpha1.ReasonFailed}
	var typed *fetch.Error
	if errors.As(err, &typed) {
		v.reason, v.stalled, v.wait = reasons[typed.Reason], typed.Permanent(), typed.RetryAfter
		return v
	}
	if errors.Is(err, context.DeadlineExceeded) {
		v.reason = v1alpha1.ReasonTimeout
	}
	return v
}
