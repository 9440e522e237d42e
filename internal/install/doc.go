// SPDX-License-Identifier: Apache-2.0

// Package install returns the objects of an installation of Satchel: the chart of charts/satchel, rendered with values. It is
// pure: it does not apply them.
package install
