// SPDX-License-Identifier: Apache-2.0

// Package write writes one object as a field manager, for real or as a dry run: it applies, adopts and releases. The order
// of objects, and what is recorded about them, are the caller's.
package write
