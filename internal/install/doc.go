// SPDX-License-Identifier: Apache-2.0

// Package install returns the objects of an installation of Satchel: those of config/default, as changed by options. It is
// pure: it does not apply them.
package install
