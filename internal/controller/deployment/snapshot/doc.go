// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads and writes what a deployment applied last, and which objects of newer plans
// were begun, as files of package lastapplied. It serves drift correction while a newer revision fails, and tells
// an upgrade which fields the deployment owned.
package snapshot
