// SPDX-License-Identifier: Apache-2.0

// Package tenant gives clients that act as a deployment's ServiceAccount and
// never as the controller, or on a remote cluster as the user of a kubeconfig or an
// account there. The controller's own identity is used for discovery,
// which says what kinds exist and nothing about anybody's objects, and for the
// two questions that decide whether a tenant may act at all: which cluster this
// is, and whether the account exists.
package tenant
