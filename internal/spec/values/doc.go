// SPDX-License-Identifier: Apache-2.0

// Package values puts the values for the templates of a chart together, from what Secrets and ConfigMaps hold and what a
// spec or a command line says. It is pure, and its errors name places and never what is there.
package values
