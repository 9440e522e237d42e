// SPDX-License-Identifier: Apache-2.0

// Package violation has the rules that a plan may break, each with a message and a remedy, and those about objects of
// other owners and bundles that would install themselves again.
package violation
