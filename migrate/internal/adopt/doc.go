// SPDX-License-Identifier: Apache-2.0

// Package adopt has the command adopt: a deployment adopts objects that another tool installed.
package adopt
