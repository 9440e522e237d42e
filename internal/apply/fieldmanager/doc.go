// SPDX-License-Identifier: Apache-2.0

// Package fieldmanager decides by the managed fields of an object which fields are ours: it resolves the conflicts of a
// server-side apply, moves fields from one manager to another, and explains which fields other managers took. It writes
// nothing.
package fieldmanager
