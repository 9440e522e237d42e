// SPDX-License-Identifier: Apache-2.0

package objecterror

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// NotServed tells whether the API server has no such resource, as opposed to no such object or namespace, which its answer
// names. That holds for all requests: reading, listing and writing.
func NotServed(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || ByConversionWebhook(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// ByConversionWebhook tells whether the API server reports a failure of a conversion webhook,
// whatever the code: that does not concern the one resource. Only the beginning of the
// message counts, as the rest may quote a resource.
func ByConversionWebhook(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "conversion webhook for ")
}

// failedCall matches the API server's message that it could not call an admission webhook: no answer
// came, for the error of an HTTP client follows. A webhook that denies, or answers nonsense, is worded
// otherwise.
var failedCall = regexp.MustCompile(`failed calling webhook "([^"]{1,253})": failed to call webhook: Post "`)

// uncalled is the name of the admission webhook that refused a request by being unreachable; empty
// for any other error.
func uncalled(err error) string {
	if !apierrors.IsInternalError(err) {
		return ""
	}
	found := failedCall.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	return found[1]
}
