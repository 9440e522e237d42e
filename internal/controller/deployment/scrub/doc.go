// SPDX-License-Identifier: Apache-2.0

// Package scrub remembers the secret values of the inputs of deployments, and removes them from
// messages. It reads no Secret.
package scrub
