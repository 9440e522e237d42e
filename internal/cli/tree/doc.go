// SPDX-License-Identifier: Apache-2.0

// Package tree has the command tree: the objects of a deployment with what they own, read with the user's permissions.
package tree
