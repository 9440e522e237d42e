// SPDX-License-Identifier: Apache-2.0

package announce

import "github.com/satchel-dev/satchel/api/v1alpha1"

// Sayings explain the reasons of the condition RolledOut, where a reason needs more than its name.
var Sayings = map[string]string{
	v1alpha1.ReasonSoaking:               "its clusters are updated, and are watched before the next wave begins",
	v1alpha1.ReasonOutsideWindow:         "no cluster may be started at this time",
	v1alpha1.ReasonSuspended:             "spec.suspend: no cluster is started; drift is still corrected",
	v1alpha1.ReasonHeld:                  "clusters wait for a user: see the suspended ones, those that wait for an approval of their own, and those that were rebuilt",
	v1alpha1.ReasonNoClusterReachable:    "none of the clusters that are left can be reached",
	v1alpha1.ReasonNoClusterSucceeded:    "no cluster was updated successfully, and no other can be started",
	v1alpha1.ReasonMaxUnavailableReached: "too many clusters are not ready to start another one (maxUnavailable)",
	v1alpha1.ReasonMaxFailuresExceeded:   "more clusters failed than maxFailures allows: repair them, raise it, publish another revision, or set spec.revision to the current one",
	v1alpha1.ReasonRollingBack:           "the clusters are brought back to the current revision",
	v1alpha1.ReasonRevisionRejected:      "it was rejected, and the clusters are back at the current revision: publish another one, change the spec, or request a reconcile to try it again",
	v1alpha1.ReasonCatchingUp:            "clusters that joined late, or were unreachable, are updated",
}
