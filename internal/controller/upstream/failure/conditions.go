// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// Report sets Ready and the conditions beside it: for an error with its reason, else Succeeded.
func Report(object conditions.Setter, err error, message string) {
	conditions.Delete(object, v1alpha1.FetchFailedCondition)
	conditions.Delete(object, v1alpha1.StorageOperationFailedCondition)
	if err == nil {
		pipeline.SetReady(object, v1alpha1.ReasonSucceeded, message)
		return
	}
	failed := Of(err)
	if failed.Condition != "" {
		pipeline.SetCondition(object, failed.Condition, metav1.ConditionTrue, failed.Reason, message)
	}
	if failed.Stalled {
		pipeline.SetStalled(object, failed.Reason, message)
		return
	}
	pipeline.SetRetrying(object, failed.Reason, message)
}

// Explain is the message of an error without the step in which it occurred. It names the Secrets with the credentials that were
// refused, unless it names them already, and the timeout that passed.
func Explain(err error, namespace string, credentials []string, timeout time.Duration) string {
	var failed *pipeline.StepError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	message := err.Error()
	switch Of(err).Reason {
	case v1alpha1.ReasonUnauthorized:
		if len(credentials) > 0 && !strings.Contains(message, "secret "+namespace+"/") {
			message += " (the credentials of the source are in secret " + strings.Join(credentials, ", ") + ")"
		}
	case v1alpha1.ReasonTimeout:
		message = fmt.Sprintf("not finished within spec.timeout (%s): %s", timeout, message)
	}
	return message
}
