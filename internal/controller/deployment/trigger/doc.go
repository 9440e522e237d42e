// SPDX-License-Identifier: Apache-2.0

// Package trigger decides which changes of other objects wake which deployments. It remembers
// nothing but the queue of the controller.
package trigger
