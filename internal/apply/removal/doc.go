// SPDX-License-Identifier: Apache-2.0

// Package removal deletes or releases objects: those that a new revision does not contain, and everything that a
// deployment has when it is removed. It does not block: what has to be waited for is left to the next call.
package removal
