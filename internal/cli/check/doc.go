// SPDX-License-Identifier: Apache-2.0

// Package check has the command check: whether the cluster and the installation are as Satchel needs them.
package check
