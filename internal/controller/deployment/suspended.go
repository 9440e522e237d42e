// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/internal/controller/deployment/settle"
)

// suspended changes nothing on the cluster. Certificates of webhooks are not renewed either: before the first of them
// expires, the status and an event warn.
func (r *Reconciler) suspended(ctx context.Context, s *state) (ctrl.Result, error) {
	settle.MarkSuspended(s.Object)
	key := s.Key()
	r.memory.Forget(key)
	r.unwatch(key)
	pause := settle.WarnSuspended(s.settling(nil))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if failed := s.Write(ctx, r.writer); failed != nil {
		return r.backoff.Conflict(key, failed)
	}
	r.backoff.Succeeded(key)
	r.settle.EmitCertificates(s.settling(nil))
	return ctrl.Result{RequeueAfter: pause}, nil
}
