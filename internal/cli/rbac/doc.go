// SPDX-License-Identifier: Apache-2.0

// Package rbac has the command rbac: the permissions that a bundle's ServiceAccount needs.
package rbac
