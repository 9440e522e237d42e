// SPDX-License-Identifier: Apache-2.0

// Package approval decides whether the plan of a deployment may be executed: the mode that applies, what in the
// plan needs an approval, the BundleApprovals about it, and the signed record of the plan that was executed
// last. It deletes BundleApprovals that have ended, and marks those that are used; conditions and events are the caller's.
package approval
