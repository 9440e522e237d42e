// SPDX-License-Identifier: Apache-2.0

// Package setup has the commands install and uninstall of Satchel itself.
package setup
