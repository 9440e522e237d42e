// SPDX-License-Identifier: Apache-2.0

// Package e2erig runs both controllers as processes of their own, with exactly the permissions that config/ grants, against
// a control plane and a registry. It needs Linux, where a process can be made to end with its parent.
package e2erig
