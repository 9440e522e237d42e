// SPDX-License-Identifier: Apache-2.0

// Package change changes fields of Satchel's objects for commands: it chooses the objects, patches them or prints what to
// commit to Git instead, and says what was done. Suspend and Resume are the changes for objects of every kind.
package change
