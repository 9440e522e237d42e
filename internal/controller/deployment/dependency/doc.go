// SPDX-License-Identifier: Apache-2.0

// Package dependency judges spec.dependsOn: cycles, and deployments that are not ready. It reads
// deployments of one namespace, and remembers nothing.
package dependency
