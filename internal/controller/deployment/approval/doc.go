// SPDX-License-Identifier: Apache-2.0

// Package approval decides whether the plan of a deployment may be executed: the mode that applies, what in the
// plan needs an approval, the BundleApprovals about it, and the signed record of the plan that was executed
// last. It writes nothing but the consumption of an approval; conditions and events are the caller's.
package approval
