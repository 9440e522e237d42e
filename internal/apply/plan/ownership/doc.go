// SPDX-License-Identifier: Apache-2.0

// Package ownership decides from the metadata of a live object who owns it, who may adopt it, and what protects it from
// deletion: labels, field managers, annotations of other tools. It is pure; what a plan does about that is decided by
// package plan.
package ownership
