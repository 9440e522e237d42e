// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LogFailure logs the failure of a reconcile, once while it stays the same: the condition of
// the object keeps it.
func LogFailure(ctx context.Context, before, after conditions.Getter, err error) {
	if err == nil || conditions.GetMessage(before, meta.ReadyCondition) == conditions.GetMessage(after, meta.ReadyCondition) {
		return
	}
	ctrl.LoggerFrom(ctx).Info("reconcile failed", "reason", conditions.GetReason(after, meta.ReadyCondition),
		"error", Shorten(err.Error(), maxLogged))
}

// maxLogged bounds an error in the log.
const maxLogged = 2048
