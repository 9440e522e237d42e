// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// suspended changes nothing on the cluster. Certificates of webhooks are not renewed either: before the first of them
// expires, the status and an event warn.
func (r *Reconciler) suspended(ctx context.Context, s *state) (ctrl.Result, error) {
	markSuspended(s.Object)
	key := s.Key()
	r.memory.Forget(key)
	r.unwatch(key)
	pause := warnSuspended(s)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if failed := s.Write(ctx, r.writer); failed != nil {
		return r.backoff.Conflict(key, failed)
	}
	r.backoff.Succeeded(key)
	r.emitCertificates(s)
	return ctrl.Result{RequeueAfter: pause}, nil
}

// warnSuspended warns of certificates that expire soon, and returns the time until that is due; zero when it was done or
// there are none.
func warnSuspended(s *state) time.Duration {
	first := s.Object.Status.CertificateExpirationTime
	if first == nil {
		return 0
	}
	if pause := first.Add(-lastPart).Sub(s.Now); pause > 0 {
		return pause
	}
	warning := fmt.Sprintf("the first expires on %s and is not renewed while the deployment is suspended: resume it", first.UTC().Format(time.DateTime))
	s.Object.Status.Warnings = withCertificateWarnings(s.Object.Status.Warnings, []string{warning})
	return 0
}
