// SPDX-License-Identifier: Apache-2.0

// Package operators installs each published operator of the corpus on a real
// control plane, by a ServiceAccount with exactly the permissions that `satchel rbac`
// prints, upgrades some of them, and removes them again.
package operators
