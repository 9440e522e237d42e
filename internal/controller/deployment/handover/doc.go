// SPDX-License-Identifier: Apache-2.0

// Package handover finds out whether an object that a deployment is about to delete is wanted by another deployment of its
// namespace, or may be: it is then released to that one, or its deletion waits (ADR 59). Namespaces are the boundary between tenants:
// what a deployment of another namespace wants never matters.
package handover
