// SPDX-License-Identifier: Apache-2.0

// Package values merges the values for the templates of a chart from Secrets, ConfigMaps, the spec and the command line.
// It is pure, and its errors name locations, never values.
package values
