// SPDX-License-Identifier: Apache-2.0

// Package abandon decides whether and when a removal that fails is abandoned, and says so in words. It is pure: what it
// decides about, and the time, are its input.
package abandon
