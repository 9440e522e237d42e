// SPDX-License-Identifier: Apache-2.0

// Package e2e runs both controllers as processes of their own, with exactly the
// permissions that config/ grants, against a real control plane, registry and Git
// server. Its tests need Linux, where a process can be made to end with its parent.
package e2e
