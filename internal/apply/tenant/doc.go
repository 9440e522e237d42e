// SPDX-License-Identifier: Apache-2.0

// Package tenant makes clients that impersonate a deployment's ServiceAccount and
// never act as the controller, or that act on a remote cluster as the user of a kubeconfig or
// a ServiceAccount there. The controller's own identity is used for discovery,
// which lists kinds and reveals nothing about objects, and for the
// two questions that decide whether a tenant may act at all: which cluster this
// is, and whether the ServiceAccount exists.
package tenant
