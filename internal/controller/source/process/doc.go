// SPDX-License-Identifier: Apache-2.0

// Package process wires the process of the source controller: its flags, the reconciler, and the servers
// for artifacts and uploads.
package process
